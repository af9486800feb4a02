"""The PTX instruction set, declared once: the model, and the catalog that fills it."""
