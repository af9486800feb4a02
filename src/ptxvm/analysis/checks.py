"""The context of a check: the program so far, and the report of findings."""

from __future__ import annotations

from ptxvm.analysis import codes
from ptxvm.analysis.program import Program
from ptxvm.analysis.report import Report
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Span
from ptxvm.isa.directives import FEATURES, Feature
from ptxvm.isa.targets import Version, gives
from ptxvm.syntax import tree

Place = tree.Node | Span


@dataclass(slots=True)
class Checks:
    """A program and its report: what every check of a directive or declaration takes."""

    program: Program
    report: Report

    def error(self, code: str, message: str, place: Place, **more: str) -> None:
        """Report an error, which makes the module invalid; `more` are label, note, help and ptxas."""
        self.report.error(code, message, place, **more)

    def warning(self, code: str, message: str, place: Place, **more: str) -> None:
        """Report a warning: the code is legal but doubtful."""
        self.report.warning(code, message, place, **more)

    def needs(self, key: str, place: Place) -> bool:
        """Report the version or target that a feature requires; returns whether the module has both."""
        feature, version = FEATURES[key], self.program.version
        if feature.until is not None and version >= feature.until:
            last = written(feature.until)
            self.lacks(
                codes.GONE,
                feature,
                place,
                f"ended with PTX {last}",
                f"Deprecated feature: '{feature.name}' not supported as of PTX version {last}",
            )
            return False
        recent, met = gives(version, feature.need.version), feature.need.met_by(self.program.target)
        if not recent:
            wanted = written(feature.need.version)
            self.lacks(
                codes.NEEDS_VERSION,
                feature,
                place,
                f"came with PTX {wanted}, and this module is of {written(version)}",
                f"Feature '{feature.name}' requires PTX ISA .version {wanted} or later",
                help=f"write `.version {wanted}`",
            )
        if not met:
            target = feature.need.targets[0]
            self.lacks(
                codes.NEEDS_TARGET,
                feature,
                place,
                f"came with {target}, and this module is for {self.program.target}",
                f"Feature '{feature.name}' requires .target {target} or higher",
                help=f"write `.target {target}`",
            )
        return recent and met

    def lacks(self, code: str, feature: Feature, place: Place, said: str, ptxas: str, help: str = "") -> None:
        """Report a feature that the module cannot use."""
        note = f"see PTX ISA {feature.section}"
        self.error(code, f"{feature.name} {said}", place, note=note, help=help, ptxas=ptxas)

    def word(self, node: tree.Node, *words: str) -> Span:
        """The span of the first of these words in a node; the span of the node if it has none."""
        for word in words:
            at = self.report.source.text.find(word, node.start, node.end)
            if at >= 0:
                return Span(at, at + len(word))
        return Span(node.start, node.end)

    def line(self, node: tree.Node) -> int:
        """The line of a node, for a help."""
        return self.report.source.location(node.start)[0]


def written(version: Version) -> str:
    """A version as `6.4`."""
    return f"{version[0]}.{version[1]}"


def name_of(declarator: tree.Declarator) -> Span:
    """The span of a declarator's name."""
    return Span(declarator.start, declarator.start + len(declarator.name))
