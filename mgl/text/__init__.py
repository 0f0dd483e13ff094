"""Text: read documents and conversations from files, cut them up, find quotes and times in them.

    document = read_document(Path("story.txt"))
    conversations = read_conversations(Path("log.jsonl"))
    found = locate("the woman", document.text)

All offsets are characters of ``document.text``. No model is known here: whoever chunks a document
passes the function that counts tokens.
"""

from mgl.text.chunks import chunk_document, window_document
from mgl.text.conversations import read_conversations
from mgl.text.private import find_private
from mgl.text.quotes import Located, locate
from mgl.text.reading import read_document
from mgl.text.sentences import numbered_sentences, sentence_spans
from mgl.text.times import TimeMention, time_mentions

__all__ = [
    "Located",
    "TimeMention",
    "chunk_document",
    "find_private",
    "locate",
    "numbered_sentences",
    "read_conversations",
    "read_document",
    "sentence_spans",
    "time_mentions",
    "window_document",
]
