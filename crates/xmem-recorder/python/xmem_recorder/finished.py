"""The end of a script whose recording or graph is complete."""

# Times that the end of the script is raised, if the script catches it, before the process exits.
MAX_RAISES = 10


class Finished(SystemExit):
    """Ends the script."""

    def __init__(self):
        super().__init__(0)
