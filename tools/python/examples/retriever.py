#!/usr/bin/env python3
"""A retriever in the shape that LangChain and LlamaIndex expect, without importing either.

    retriever.py INDEX QUERY...      an index that was built with store_text
"""
import argparse
import asyncio
import dataclasses

import gpuidx


@dataclasses.dataclass
class Document:
    page_content: str
    metadata: dict


class GpuidxRetriever:
    """invoke and ainvoke are LangChain's names, retrieve and aretrieve LlamaIndex's."""

    def __init__(self, index, k=4, **arguments):
        self.index, self.k, self.arguments = index, k, arguments

    def invoke(self, query):
        hits = self.index.search(query, self.k, **self.arguments).hits()
        texts = self.index.texts([h.docid for h in hits])
        return [Document(text, {"id": h.docno, "score": h.score}) for h, text in zip(hits, texts)]

    async def ainvoke(self, query):
        return await asyncio.get_running_loop().run_in_executor(None, self.invoke, query)

    retrieve, aretrieve = invoke, ainvoke


def main(path, query):
    with gpuidx.open(path) as index:
        for document in GpuidxRetriever(index).invoke(" ".join(query)):
            print("%.4f %s %s" % (document.metadata["score"], document.metadata["id"], document.page_content[:80]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("index", metavar="INDEX", help="an index that was built with store_text")
    parser.add_argument("query", metavar="QUERY", nargs="+")
    given = parser.parse_args()
    main(given.index, given.query)
