"""The rebuild: from committed notebooks to a site, and the ``attsvm`` command line.

One build goes through these rooms, each a small module:

``chapters``
    finds the notebooks of the table of contents and checks that each can be built;
``cache``
    decides which of them must run again, and says why;
``schedule`` and ``execute``
    run those with papermill, each in a process of its own;
``normalise``
    makes an executed notebook reproducible: nothing of the clock or the run stays in it;
``stage`` and ``check``
    gather the book and its results in one folder and hold them against the claims;
``render``
    turns that folder into the site and swaps it in for the last one.

Nothing here knows any mathematics.
"""
