"""The tool that makes this book: from committed notebooks to a site, and chapters on demand.

It knows no mathematics: what it takes from the package are the formats that chapters write in.
Rooms, from the bottom up:

``build``
    finds the chapters (``chapters``, ``layout``), decides which must run again (``cache``),
    executes those, each in a process of its own (``schedule``, ``execute``, ``warm``), makes them
    reproducible (``normalise``), gathers and checks the book (``stage``, ``check``) and renders it
    (``render``);
``site``
    is the Sphinx extension: figure cards, claim boxes, the scorecard, the look of a page;
``run``
    executes one chapter, or a grid of runs, with parameters of the reader's own;
``ship``
    serves and prints a finished site, and holds two builds against each other.
"""
