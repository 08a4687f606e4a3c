"""A sitecustomize of the user's own, which a recording must not hide."""
import builtins

builtins.COMPANY_SETTINGS = "loaded"
