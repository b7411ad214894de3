"""The inspector: where every message went, turn by turn, as one JSON document and a page that shows it.

    anchors     what an agent must repeat exactly or get wrong: names, paths, numbers
    recording   a conversation, the requests in it, and which anchors each answer needed from its past
    replay      the loop: a view before each answer, what of it a cache would hold, whether a need was met
    words       what a person said, and how much of it a view still says
    sentences   the sentences of a text, and which of them are constraints
    money       what requests cost, by providers' price lists
    wire        how messages in any format of contextfold are looked at
    document    the JSON document between the engine and the page, its version and its fields
    replayed    a document from a file: the conversation is replayed under one or two settings
    stored      a document from a store: what was recorded while the session ran
    records     a document from what a gateway keeps, which holds no messages
    page        the document and the page's own files as one HTML file that asks nothing of any network
    server      the same page on loopback, and what of a store it is kept up to date with

The benchmark (``benchmarks/replay``) measures with ``anchors``, ``recording``, ``replay``, ``words`` and ``money``, and
so does ``contextfold.batch``: pages, batches and the published figures cannot disagree. What does not belong here:
deciding what a view holds (``Compactor``).
"""
