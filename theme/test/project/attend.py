"""A file that a page links to."""


class Attend:
    """One method that an outline shows, one that it does not."""

    def forward(self, q, k):
        return (q @ k.mT).softmax(-1)  # (query, key)

    def _check(self):
        return """a text
        over two lines"""
