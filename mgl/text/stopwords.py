"""English words that say little by themselves."""

from __future__ import annotations

from typing import Final

STOP_WORDS: Final = frozenset(
    """
    a an and are as at be but by for if in into is it no not of on or such that the their
    then there these they this to was will with
    """.split()
)
"""Those of Lucene's English analyzer."""

FUNCTION_WORDS: Final = frozenset(
    """
    about above after again against ain all am an and any are aren as at be because been
    before being below between both but by can couldn did didn do does doesn doing don down
    during each few for from further had hadn has hasn have haven having he her here hers
    herself him himself his how if in into is isn it its itself just ll ma me mightn more
    most mustn my myself needn no nor not now of off on once only or other our ours
    ourselves out over own re same shan she should shouldn so some such than that the their
    theirs them themselves then there these they this those through to too under until up ve
    very was wasn we were weren what when where which while who whom why will with won
    wouldn you your yours yourself yourselves
    """.split()
)
"""Those of NLTK's list of English stop words that have no apostrophe and more than one letter."""
