#!/usr/bin/env python3
"""An engine's script of lsr-benchmark: index a data set's embeddings, answer its queries, exactly.

    pip install lsr-benchmark gpuidx
    gpuidx_retrieval.py --dataset DATASET --embedding MODEL --output FOLDER [-k 1000] [--bits 16] [--engine cpu]

DATASET and MODEL are names of lsr-benchmark's lists or folders: MODEL/doc/doc-embeddings.npz and doc-ids.txt, and the
same of `query`. FOLDER gets run.txt.gz and what tirex-tracker measures: index-metadata.yml, retrieval-metadata.yml."""
import gzip
from shutil import rmtree

import click
import gpuidx
import ir_datasets
import lsr_benchmark
from lsr_benchmark.click import retrieve_command
from tirex_tracker import ExportFormat, register_metadata, tracking


@retrieve_command()
@click.option("--bits", default=16, help="Bits of a quantized weight.")
@click.option("--engine", default="auto", type=click.Choice(["auto", "cpu", "gpu"]), help="What answers.")
def main(dataset, embedding, output, k, bits, engine):
    output.mkdir(parents=True, exist_ok=True)
    lsr_benchmark.register_to_ir_datasets(dataset)
    data = ir_datasets.load("lsr-benchmark/" + dataset)
    register_metadata({"actor": {"team": "reneuir-baselines"}, "tag": "gpuidx-%s-%d-%d" % (
        embedding.replace("/", "-"), bits, k)})

    documents = data.doc_embeddings(model_name=embedding)
    ids = [document for document, _, _ in documents]
    vectors = [dict(zip(tokens.tolist(), weights.tolist())) for _, tokens, weights in documents]
    queries = [(query, dict(zip(tokens.tolist(), weights.tolist())))
               for query, tokens, weights in data.query_embeddings(model_name=embedding)]
    path = str(output / "index.gx")
    with tracking(export_file_path=output / "index-metadata.yml", export_format=ExportFormat.IR_METADATA):
        index = gpuidx.build(path, ids, vectors=vectors, bits=bits, force=True)
    rmtree(output / ".tirex-tracker", ignore_errors=True)
    with tracking(export_file_path=output / "retrieval-metadata.yml", export_format=ExportFormat.IR_METADATA):
        found = [index.search(query, k=k, engine=engine) for _, query in queries]
    rmtree(output / ".tirex-tracker", ignore_errors=True)
    with gzip.open(output / "run.txt.gz", "wt") as run:
        for (query, _), results in zip(queries, found):
            for hit in results:
                run.write("%s Q0 %s %d %s gpuidx\n" % (query, hit.docno, hit.rank, hit.score))


if __name__ == "__main__":
    main()
