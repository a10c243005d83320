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

Beside it, one chapter with a reader's own values:

``parameters``
    reads from a notebook which values it takes, and checks those given;
``single`` and ``page``
    execute one chapter into a folder and render it as a page that needs nothing else;
``grid``
    joins the runs of a sweep in a table and a page.

Nothing here knows any mathematics.
"""
