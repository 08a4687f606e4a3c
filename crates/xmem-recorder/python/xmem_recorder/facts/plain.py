"""Values as JSON can say them in a trace: without escapes."""

# Kineto refuses backslashes (libkineto, `sanitizeStrForJSON`), so that no character can be escaped.
_ESCAPED = {ord('"'): "'", ord("\\"): "/", **{code: " " for code in [*range(32), 127]}}


def plain(value):
    """A value as JSON can say it without escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8").translate(_ESCAPED)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, dict):
        return {plain(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "item") and getattr(value, "numel", lambda: 0)() == 1:
        return plain(value.item())
    return str(value)
