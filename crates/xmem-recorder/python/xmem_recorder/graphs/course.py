"""What the loop of a script does around its models: the order of gradients, steps and what stands between them."""

FORWARD = "forward"
BACKWARD = "backward"
STEP = "step"
ZERO_GRAD = "zero-grad"
CLIP = "clip-grad"


class Course:
    """The events of the iteration that is exported."""

    def __init__(self):
        # Optimizers by weak reference, in the order in which they were made, and their steps.
        self.optimizers = []
        self.steps = {}
        # The kind and the details of each event, in their order.
        self.events = []
        # Of each backward pass: the numbers of the tensors that it began with, and its entries on the tape.
        self.backwards = []
        # Set by `clip_grad_norm_`.
        self.clipping = None
        self.uses_scaler = False
        # Checkpointed parts: the modules that were called in them.
        self.checkpoints = []
        # Classes of the script and its libraries that derive torch.autograd.Function, by name.
        self.functions = set()

    def begin_iteration(self):
        """Forgets what came before the iteration."""
        self.events, self.backwards, self.clipping, self.checkpoints = [], [], None, []

    def note(self, kind, **details):
        """Adds an event; calls of models that follow each other are one."""
        if kind == FORWARD and self.events and self.events[-1][0] == FORWARD:
            return
        self.events.append((kind, details))

    def living_optimizers(self):
        """The optimizers that still exist."""
        return [known() for known in self.optimizers if known() is not None]

    def parameters(self):
        """The ids of the parameters that the optimizers own."""
        return {
            id(parameter)
            for optimizer in self.living_optimizers()
            for group in optimizer.param_groups
            for parameter in group["params"]
        }

    def is_complete(self):
        """Returns whether each optimizer has made a step in this iteration; one that makes none is not waited for long."""
        counts = [self.steps.get(id(optimizer), 0) for optimizer in self.living_optimizers()]
        return bool(counts) and (min(counts) >= 1 or max(counts) >= MAX_STEPS_WITHOUT)

    def of_one_iteration(self):
        """The events without those after the last step that belong to the next iteration."""
        kinds = [kind for kind, _ in self.events]
        if STEP not in kinds or ZERO_GRAD not in kinds or kinds.index(ZERO_GRAD) > kinds.index(STEP):
            return self.events
        return self.events[: len(kinds) - kinds[::-1].index(STEP)]

    def zero_grad(self):
        """Where the gradients are dropped, and whether they are set to None."""
        kinds = [kind for kind, _ in self.events]
        if ZERO_GRAD not in kinds:
            return {"place": "none", "set_to_none": True}
        at = kinds.index(ZERO_GRAD)
        before = kinds[:at]
        if STEP in before:
            place = "after-step"
        elif BACKWARD in before:
            place = "after-step" if STEP not in kinds[at:] else "between"
        elif FORWARD in before:
            place = "before-backward"
        else:
            place = "before-forward"
        return {"place": place, "set_to_none": self.events[at][1]["set_to_none"]}


# Steps of one optimizer after which those that made none are not waited for.
MAX_STEPS_WITHOUT = 20
