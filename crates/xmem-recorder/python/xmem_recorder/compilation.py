"""`torch.compile`: models run eagerly."""

from . import session


def install(torch):
    """Replaces the compiler by a function that returns the model."""

    def compile(model=None, **_options):
        session.note(
            "torch.compile: recorded eagerly; compiled for the GPU, the job may need more or less memory"
        )
        if model is None:
            return lambda function: function
        return model

    if hasattr(torch, "compile"):
        torch.compile = compile
    if hasattr(torch.nn.Module, "compile"):

        def compile_module(self, *_args, **_options):
            compile(self)

        torch.nn.Module.compile = compile_module
