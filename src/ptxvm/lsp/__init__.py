"""The language server of PTX: diagnostics, hover, completion, navigation, formatting and lints for editors.

`server` speaks the Language Server Protocol; everything else is a function of a `document.Document` and a place in it.
"""
