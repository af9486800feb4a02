"""A command line: commands, whose options and arguments are the parameters of functions.

    Repeat = Annotated[int, Option(metavar="N", least=1, help="How often it runs.")]

    @commands.command()
    def bench(names: Annotated[list[str] | None, Argument("NAME")] = None, repeat: Repeat = 5) -> int:

A parameter with a default may be left out; a `list` may be given several times; a `bool` is a flag.  The docstring is the
help.  This stands here since libraries for it take longer to import than most modules of PTX take to check.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from ptxvm.cli.failures import WrongCall
from ptxvm.diagnostics.suggest import closest

Value = str | int | float | bool | None | list[str]
"""What a parameter gets."""

HELP = ("-h", "--help")
NUMBERS: dict[type, tuple[Callable[[str], int | float], str]] = {int: (int, "an integer"), float: (float, "a number")}


class Misused(WrongCall):
    """A command was given words that it does not take."""

    def __init__(self, message: str, command: str) -> None:
        super().__init__(f"{message}; see '{command} --help'")
        self.command = command


class Option(NamedTuple):
    """An option: its name, `--` and that of the parameter unless it has another; `least` is the smallest number."""

    name: str = ""
    metavar: str = ""
    help: str = ""
    least: float | None = None


class Argument(NamedTuple):
    """An argument, by its place."""

    metavar: str


class Parameter(NamedTuple):
    """A parameter of a command, as its function declares it."""

    name: str
    kind: Option | Argument
    type: type
    many: bool
    required: bool
    default: Any

    @property
    def shown(self) -> str:
        """Its name on the command line."""
        return self.kind.metavar if isinstance(self.kind, Argument) else self.kind.name

    def value(self, word: str, command: str) -> Value:
        """What a word means for it."""
        if self.type not in NUMBERS:
            return word
        number, what = NUMBERS[self.type]
        try:
            value = number(word)
        except ValueError:
            raise Misused(f"invalid value for '{self.shown}': '{word}' is not {what}", command) from None
        if isinstance(self.kind, Option) and self.kind.least is not None and not value >= self.kind.least:
            raise Misused(f"invalid value for '{self.shown}': {word} is not at least {self.kind.least}", command)
        return value


class Command:
    """A function that is called from the command line.

    With `passes_unknown`, words that are no option of it are arguments; with `ends_at_argument`, all words behind the first
    argument are arguments too.
    """

    def __init__(
        self, called: Callable[..., int], name: str, *, passes_unknown: bool = False, ends_at_argument: bool = False
    ) -> None:
        self.called, self.name = called, name
        self.passes_unknown, self.ends_at_argument = passes_unknown, ends_at_argument

    @property
    def summary(self) -> str:
        """The first line of its help."""
        return (self.called.__doc__ or "").partition("\n")[0].strip()

    @property
    def help(self) -> str:
        """Its help: what it does, its options."""
        from ptxvm.cli.help import page

        words = []
        for each in self.parameters():
            if isinstance(each.kind, Argument):
                metavar = each.shown if each.required else f"[{each.shown}]"
                words.append(f"{metavar}..." if each.many else metavar)
        options = [each for each in self.parameters() if isinstance(each.kind, Option)]
        usage = " ".join([self.name, "[OPTIONS]", *words])
        return page(usage, inspect.cleandoc(self.called.__doc__ or ""), {"Options": option_rows(options)})

    def parameters(self) -> list[Parameter]:
        """Its parameters, from the annotations of its function."""
        hints = get_type_hints(self.called, include_extras=True)
        found = inspect.signature(self.called).parameters.values()
        return [parameter(each, hints[each.name]) for each in found]

    def run(self, words: Sequence[str]) -> int:
        """Call the function with what the words say; its result is the exit code."""
        parameters = self.parameters()
        arguments, given = self.read(words, {each.shown: each for each in parameters if isinstance(each.kind, Option)})
        if given is None:
            print(self.help, end="")
            return 0
        values: dict[str, Value] = {}
        for each in parameters:
            if isinstance(each.kind, Argument):
                values[each.name] = self.taken(each, arguments)
            else:
                values[each.name] = given.get(each.shown, each.default)
        if arguments:
            raise Misused(f"got unexpected extra arguments ({' '.join(arguments)})", self.name)
        return self.called(**values)

    def taken(self, parameter: Parameter, arguments: list[str]) -> Value:
        """The value of an argument, which takes its words from those that are left."""
        if not arguments:
            if parameter.required:
                raise Misused(f"missing argument '{parameter.shown}'", self.name)
            return parameter.default  # type: ignore[no-any-return]
        if parameter.many:
            every = list(arguments)
            arguments.clear()
            return every
        return parameter.value(arguments.pop(0), self.name)

    def read(self, words: Sequence[str], options: Mapping[str, Parameter]) -> tuple[list[str], dict[str, Value] | None]:
        """The arguments among some words, and the values of options; None for these where help is asked for."""
        arguments: list[str] = []
        values: dict[str, Value] = {}
        wants_help = False
        left = iter(words)
        for word in left:
            name, equals, value = word.partition("=")
            if word == "--" or (self.ends_at_argument and (word == "-" or not word.startswith("-"))):
                arguments += [*([] if word == "--" else [word]), *left]
            elif word in HELP:
                wants_help = True
            elif name in options:
                self.take(options[name], value if equals else None, left, values)
            elif not word.startswith("-") or word == "-" or self.passes_unknown:
                arguments.append(word)
            else:
                guess = closest(name, options) if name.startswith("--") else ""
                raise Misused(f"no such option: {name}" + (f" (Possible options: {guess})" if guess else ""), self.name)
        return arguments, None if wants_help else values

    def take(self, option: Parameter, value: str | None, left: Iterator[str], values: dict[str, Value]) -> None:
        """Enter the value of an option, which stands behind `=` or is the next word."""
        name = option.shown
        if option.type is bool:
            if value is not None:
                raise Misused(f"option '{name}' does not take a value", self.name)
            values[name] = True
            return
        if value is None and (value := next(left, None)) is None:
            raise Misused(f"option '{name}' requires an argument", self.name)
        if option.many:
            known = values.setdefault(name, [])
            known.append(value)  # type: ignore[union-attr]
        else:
            values[name] = option.value(value, self.name)


class Commands:
    """The commands of a program, with the options of the program itself: flags, each with its help."""

    def __init__(self, name: str, summary: str, flags: Mapping[str, str]) -> None:
        self.name, self.summary, self.flags = name, summary, flags
        self.commands: dict[str, Command] = {}

    def command(
        self, name: str = "", *, passes_unknown: bool = False, ends_at_argument: bool = False
    ) -> Callable[[Callable[..., int]], Callable[..., int]]:
        """Enter a function as a command, under its own name or another one."""

        def enter(called: Callable[..., int]) -> Callable[..., int]:
            word = name or called.__name__
            made = Command(called, f"{self.name} {word}", passes_unknown=passes_unknown, ends_at_argument=ends_at_argument)
            self.commands[word] = made
            return called

        return enter

    @property
    def help(self) -> str:
        """The help of the program: its options and commands."""
        from ptxvm.cli.help import page

        options = [*self.flags.items(), (", ".join(HELP), "Show this message and exit.")]
        commands = [(word, command.summary) for word, command in self.commands.items()]
        return page(f"{self.name} [OPTIONS] COMMAND [ARGS]...", self.summary, {"Options": options, "Commands": commands})

    def run(self, words: Sequence[str]) -> int | str:
        """Run the command that some words name; the exit code, or the flag of the program that stands before it."""
        found: int | str | None = None
        for n, word in enumerate(words):
            if word in HELP:
                found = found or 0
            elif word in self.flags:
                found = found or word
            elif word.startswith("-"):
                guess = closest(word, self.flags)
                raise Misused(f"no such option: {word}" + (f" (Possible options: {guess})" if guess else ""), self.name)
            elif found is not None:
                break
            elif word in self.commands:
                return self.commands[word].run(words[n + 1 :])
            else:
                guess = closest(word, self.commands)
                raise Misused(f"no such command '{word}'" + (f". Did you mean '{guess}'?" if guess else ""), self.name)
        if isinstance(found, str):
            return found
        print(self.help, end="")
        return 0


def parameter(declared: inspect.Parameter, hint: object) -> Parameter:
    """A parameter of a function, of which the annotation says what it is on the command line."""
    annotated, kind = get_args(hint)
    if isinstance(kind, Option) and not kind.name:
        kind = kind._replace(name=f"--{declared.name}")
    plain = get_args(annotated)[0] if isinstance(annotated, UnionType) else annotated  # `A | None`
    many = get_origin(plain) is list
    required = declared.default is inspect.Parameter.empty
    default = None if required else declared.default
    return Parameter(declared.name, kind, get_args(plain)[0] if many else plain, many, required, default)


def option_rows(options: Sequence[Parameter]) -> list[tuple[str, str]]:
    """The options of a command for its help: how each is written, and what it is for."""
    rows = []
    for each in options:
        notes = []
        if each.type is not bool and each.default not in (None, ""):
            notes.append(f"default: {each.default}")
        if isinstance(each.kind, Option) and each.kind.least is not None:
            notes.append(f"x>={each.kind.least:g}")
        said = each.kind.help if isinstance(each.kind, Option) else ""
        rows.append((f"{each.shown} {each.kind.metavar}".rstrip(), said + (f"  [{'; '.join(notes)}]" if notes else "")))
    return [*rows, (", ".join(HELP), "Show this message and exit.")]
