/* search.h: what the commands that search (query, replay, bench) have in common: their flags, and
 * opening an index on an engine as those flags say.
 */
#ifndef GX_TOOLS_CLI_SEARCH_FLAGS_H
#define GX_TOOLS_CLI_SEARCH_FLAGS_H

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"

#define CLI_OPS GX_OP_WORDS
#define CLI_PRESETS GX_PRESET_WORDS
#define CLI_ALGORITHMS GX_ALGORITHM_WORDS
#define CLI_ENGINES "auto|cpu|gpu"               /* as gx_engine_kind does */
#define CLI_SEARCH_ENGINES CLI_ENGINES "|hybrid" /* both; see hybrid.h */
#define CLI_SYNTAXES GX_SYNTAX_WORDS

/* clang-format off */
/* Rows for a command's table of flags.
 * CLI_SEARCH_FLAGS includes CLI_DEVICE_FLAGS, with CLI_LINGER_FLAG, CLI_DEVICES_FLAGS and
 * CLI_INDEX_FLAGS. */
#define CLI_INDEX_FLAGS \
    {"check", 0, CLI_CHOICE, "structure|checksum|full", "checksum", \
     "how much of the index is verified before it is used. `structure`: what later reads rely on, takes no time; " \
     "`checksum`: also the checksums, reads the whole file; `full`: also decodes every list"}, \
    {"load", 0, CLI_CHOICE, "map|read", "map", \
     "how the index comes into memory. `map`: its pages are read when they are first used, and processes share them; " \
     "`read`: the whole file is read first, into memory of its size. Use `read` where the file may be truncated or " \
     "overwritten meanwhile: the program keeps what it has read"}
#define CLI_LINGER_FLAG \
    {"linger", 0, CLI_COUNT, "US", "100", /* GX_DEFAULT_LINGER */ \
     "after answering a single query the GPU's search kernel waits this many microseconds for the next one, which " \
     "then skips the launch (about 4 us). The waiting kernel occupies the GPU. 0: it never waits", .max = 1000000}
#define CLI_JOIN_FLAG \
    {"join", 0, CLI_CHOICE, "auto|never|always", "auto", \
     "whether the parts of a collection are joined to one index when they are opened. Searches are then as fast as " \
     "those of one file; the index takes time, and as much room in `$TMPDIR` or `/tmp` as the parts' lists. `auto`: " \
     "where a GPU searches; on the CPU small parts, when a later commit is opened"}
#define CLI_DEVICES_FLAGS \
    {"devices", 0, CLI_LIST, "LIST", NULL, \
     "use several GPUs, such as `0,1`, or `all`: each holds the whole index, and threads and large batches are " \
     "spread over them. More queries are answered per second; one query alone takes as long as on one GPU"}, \
    {"spread", 0, CLI_CHOICE, "copies|parts", "copies", /* as gx_spread counts them */ \
     "what each GPU of `--devices` holds. `copies`: the whole index, which is fastest; `parts`: some parts of a " \
     "collection, about as many bytes as the other GPUs hold. Take `parts` where one GPU has no room for all"}
/* What of a machine an engine may use. */
#define CLI_DEVICE_FLAGS \
    {"device", 0, CLI_COUNT, "N", "0", "the number of the GPU, as `gpuidx devices` lists them", .max = 1023}, \
    {"device-memory", 0, CLI_BYTES, "SIZE", "0", \
     "use at most this many bytes of GPU memory, such as `20G`; 0: all that is free less a reserve"}, \
    {"map-memory", 0, CLI_BYTES, "SIZE", NULL, \
     "the most memory for tables derived from the index: host memory for the CPU engine, GPU memory for the GPU " \
     "engine. 0: no tables; without this flag, no limit"}, \
    CLI_JOIN_FLAG, \
    CLI_LINGER_FLAG
/* Where the lists of an index lie that has no room in GPU memory. */
#define CLI_RESIDENCY_POLICIES "gdsf|static" /* as gx_residency_policy counts them */
#define CLI_RESIDENCY_FLAGS \
    {"resident", 0, CLI_TEXT, "SIZE", "auto", \
     "keep at most this much of the lists' payload in GPU memory: bytes, such as `20G`, or a share of it, such as " \
     "`25%`. The rest stays in host memory, and the GPU reads from there what a search needs, which is slower. " \
     "`auto`: all where it fits, else what fits. Results do not change"}, \
    {"residency-policy", 0, CLI_CHOICE, CLI_RESIDENCY_POLICIES, "gdsf", \
     "which lists stay in GPU memory where not all fit. `gdsf`: those used most for their size and lately; " \
     "`static`: only those that the log of `--warm` uses most for their size"}, \
    {"warm", 0, CLI_TEXT, "LOG", NULL, \
     "before the first query, fill that part of GPU memory with the lists that the queries of this log use most"}
/* How a query log is read. */
#define CLI_LOG_FLAGS \
    {"format", 'f', CLI_CHOICE, "guess|efficiency|million|tsv|csv|lines|jsonl|topics|docs|smart|vectors|csr", "guess", \
     "the form of `LOG`, each shown in `gpuidx help replay`. `guess`: by its first lines"}, \
    {"columns", 0, CLI_TEXT, "LIST", NULL, \
     "what the columns of a TSV or CSV log are, such as `-,id,text,filter`: `text` one or more times, which are " \
     "joined; `id`, without which queries are numbered from 1; `filter`: the query's own filter; `-` is left out"}, \
    {"ids", 0, CLI_CHOICE, "log|number", "log", \
     "the ids of queries. `log`: those of the log; `number`: 1 for the first query, 2 for the second, and so on, " \
     "as Cranfield's judgements count its queries"}, \
    {"members", 0, CLI_TEXT, "LIST", NULL, \
     "which members of JSON vectors hold the id and the weights, such as `id=qid,vector=weights`"}, \
    {"topic-fields", 0, CLI_TEXT, "LIST", "title", \
     "which fields of TREC topics make the query: `title`, `desc` and `narr`, separated by commas"}, \
    {"encoding", 0, CLI_CHOICE, "auto|utf-8|latin1", "auto", \
     "how the bytes of `LOG` are read; `auto`: as UTF-8, and lines that are not UTF-8 as Latin-1"}
#define CLI_ID_FILES_FLAG \
    {"allow-id-files", 0, CLI_SWITCH, NULL, NULL, \
     "let conditions `id:@FILE` in queries that are read from standard input or a log read files, and print lines of " \
     "them that are no ids. Give it only where you trust who wrote the queries"}
#define CLI_RM3_FLAG \
    {"rm3", 0, CLI_TEXT, "DOCS,TERMS,WEIGHT", NULL, \
     "expand each query by RM3: add the best `TERMS` terms of its best `DOCS` documents; `WEIGHT`, from 0 to 1, is " \
     "how much the original query counts. For recall, where queries are short. `--rm3` alone is 10,10,0.5. The " \
     "index must store its texts", .bare = "10,10,0.5"}
#define CLI_PAIR_THRESHOLDS_FLAG \
    {"pair-thresholds", 0, CLI_COUNT, "N", "0", \
     "before the first query, run all N (N - 1) / 2 two-term OR queries over the `N` most frequent terms and keep " \
     "the score of each one's `k`-th result. An OR query that contains such a pair starts with that score as its " \
     "threshold. Results do not change. Only for an index of one file, not for a collection", .max = GX_MAX_PAIRED}
#define CLI_SEARCH_FLAGS \
    {"top", 'k', CLI_COUNT, "N", "10", "print at most `N` results of a query", .min = 1, .max = UINT32_MAX}, \
    {"op", 0, CLI_CHOICE, CLI_OPS, "or", \
     "which documents match. `or`: those with at least one of the query's words, best for effectiveness; `and`: " \
     "those with all of them, fewer results and faster; `and-or`: as `and` where that gives `-k` results, else as " \
     "`or`"}, \
    {"syntax", 0, CLI_CHOICE, CLI_SYNTAXES, "plain", \
     "how queries are read. `plain`: every word is searched for, and signs mean nothing; `boolean`: `+must` `-not` " \
     "`(a OR b)` `AND` `OR` `NOT` `term^2.5` `year:2019`, see `gpuidx help query`"}, \
    {"quotes", 0, CLI_CHOICE, GX_QUOTES_WORDS_LIST, "phrase", \
     "what double quotes mean in the plain syntax, of an index that `build --positions` has made. `phrase`: \"new " \
     "york\" is found where the words stand in a row, \"new york\"~3 also where they are moved by up to 3 places; " \
     "`words`: nothing, which is the default where logs are read"}, \
    {"sdm", 0, CLI_TEXT, "WORDS,ORDERED,UNORDERED", NULL, \
     "weigh pairs of neighbouring words of a plain query, too (the sequential dependence model): `WORDS` for each " \
     "word, `ORDERED` for each pair that stands in a row, `UNORDERED` for each within 8 places in any order. `--sdm` " \
     "alone is 0.85,0.1,0.05. It needs an index of `build --positions`", .bare = "0.85,0.1,0.05"}, \
    {"only", 0, CLI_TEXT, "FILE", NULL, \
     "search only the documents whose ids `FILE` has, one on each line. Ids that the index does not have are passed " \
     "over, and a note says how many. Scores are those of a search of all documents"}, \
    {"not", 0, CLI_TEXT, "FILE", NULL, \
     "leave out the documents whose ids `FILE` has, one on each line; with `--only`, of those"}, \
    {"filter", 0, CLI_FILTER, "EXPRESSION", NULL, \
     "search only the documents whose attributes (`gpuidx build --attr`) are so: `year:[2015 TO 2019] AND NOT " \
     "category:cs.IR`, see `gpuidx help query`. May be given again: then all expressions hold. Scores are those of a " \
     "search of all documents"}, \
    {"scorer", 0, CLI_CHOICE, CLI_PRESETS, "bm25", \
     "the formula of the scores. An index that was imported with impacts is searched with `impact`, which is the " \
     "default there"}, \
    {"fields", 0, CLI_TEXT, "NAME^W:b=B,...", NULL, \
     "search these fields of the documents (`gpuidx build --field`), each with a weight: `title^3,text`. `all`: all " \
     "fields, each of weight 1. Without it the fields are searched as one text. See Text fields in `gpuidx help " \
     "query`"}, \
    {"field-scoring", 0, CLI_CHOICE, "bm25f|best|sum", "bm25f", \
     "how `--fields` are scored together. `bm25f`: their weighted words as those of one text; `best`: a " \
     "document has the " \
     "greatest score of its fields, each scored by itself; `sum`: the sum of them"}, \
    {"k1", 0, CLI_NUMBER, "X", NULL, "BM25's k1, at least 0, instead of the scorer's own", .max = 3.4e38}, \
    {"b", 0, CLI_NUMBER, "X", NULL, "BM25's b, from 0 to 1, instead of the scorer's own", .max = 1}, \
    {"prune", 0, CLI_CHOICE, "on|off", "on", \
     "`on`: skip postings that cannot change the results; `off`: score every posting, to measure what skipping " \
     "saves"}, \
    {"algorithm", 0, CLI_CHOICE, CLI_ALGORITHMS, "auto", \
     "how the results are found, to compare algorithms; the results are always the same. `auto`: the engine's own " \
     "choice, the fastest; `pmf`: for AND, Parallel Merge Find, which intersects the lists and skips blocks; for OR " \
     "as `taat`; `taat`: term at a time, which scores every posting into a table with a place for each document; " \
     "`daat`: document at a time, with forward seeks over blocks, on a GPU as `pmf`; these three are those of Ding " \
     "et al. (2009). `block-max`: for OR, bounds of ranges of documents, which `auto` " \
     "takes for queries of many terms, and on a GPU for fewer learned weights where it is likely to be faster; else " \
     "as `auto`"}, \
    {"recursion", 0, CLI_COUNT, "N", "0", \
     "levels of recursion of Parallel Merge Find; they pay above 5 M integers", .max = GX_MAX_RECURSION}, \
    {"approximate", 0, CLI_TEXT, "X", "0", \
     "give up some of the answer of `--op=or` for speed: `terms:X`, `blocks:N`, or both with a comma between; a " \
     "number alone is `terms`; 0: exact. `terms:0.3`: terms that weigh least are left out " \
     "of a first search, as many as have at most this share (0 to 1) of the query's weight; its best `2 k + 40` " \
     "documents are then ranked by all terms. `blocks:50`: only " \
     "the 50 blocks of 256 neighbouring documents with the greatest upper bounds are searched, so that the time " \
     "has a limit. For 10 results `terms` saves most, with or without `blocks`; for 1,000 `blocks` does. Scores " \
     "are exact; which documents are found is not promised: `gpuidx replay --verify` tells the recall. It is for " \
     "long queries, of 6 weights or 16 words and more: shorter ones are answered exactly in less time. " \
     "`blocks` means nothing with an `--algorithm` other than `auto` and `block-max`. Use it on the " \
     "CPU; a GPU is faster with exact answers, and knows `terms` alone"}, \
    {"max-expansions", 0, CLI_COUNT, "N", "50", \
     "a word such as `neutrin*`, `n?utrino`, `neutrino~1` or `/neutrin[os]/` of the boolean syntax stands for at " \
     "most `N` words of the index: those that most documents hold", .min = 1, .max = GX_MAX_TERMS}, \
    {"fuzzy-prefix", 0, CLI_COUNT, "N", "0", \
     "the first `N` characters of a word such as `neutrino~1` have no typing errors", \
     .max = GX_MAX_FUZZY_CHARACTERS}, \
    {"expansion-scoring", 0, CLI_CHOICE, GX_EXPANSION_SCORING_WORDS, "each", \
     "how such a word scores. `each`: the sum of the words that it stands for, each by its own idf, of typing errors " \
     "divided by 1 + their number; `one`: as one word, whose tf is the sum of theirs and whose df is the greatest; " \
     "`constant`: 1, or its `^` weight"}, \
    {"synonyms", 0, CLI_TEXT, "FILE", NULL, \
     "replace words of queries by the rules of `FILE`, in the form of Solr's synonym files: `tv => television, tv` " \
     "or `sofa, couch`, one rule a line. See Synonyms in `gpuidx help query`"}, \
    {"query-k1", 0, CLI_NUMBER, "X", NULL, \
     "weigh the words of plain queries by BM25, too, with this k1, for long queries: a word that a query of `qlen` " \
     "words has `qtf` times gets the weight idf * qtf / (qtf + k1 * (1 - b + b * qlen / avgdl)), in the place of " \
     "`qtf`. 0.9 where `--query-b` alone is given; quotes mean nothing then", .max = 3.4e38}, \
    {"query-b", 0, CLI_NUMBER, "X", NULL, "the b of `--query-k1`, from 0 to 1; 0.4 where that is given alone", \
     .max = 1}, \
    {"engine", 0, CLI_CHOICE, CLI_SEARCH_ENGINES, "auto", \
     "where to search; `auto` takes a GPU where one can be used that has room for the index, if need be without its " \
     "lists (`--resident`), else the CPU; `hybrid` lets both " \
     "answer, each query where it is answered sooner (`gpuidx help calibrate`)"}, \
    CLI_DEVICE_FLAGS, \
    CLI_RESIDENCY_FLAGS, \
    CLI_DEVICES_FLAGS, \
    CLI_INDEX_FLAGS
/* clang-format on */

/* The flags' values, but for --approximate. */
gx_query_options cli_query_options(const cli_args *a);
/* Add --approximate. 0, or the exit code with the message printed. */
int cli_add_approximate(gx_query_options *o, const cli_args *a);
int cli_add_prior(gx_query_options *o, const cli_args *a);
int cli_add_sdm(gx_query_options *o, const cli_args *a);
/* Add --synonyms, which are read for the index and closed at the program's end. */
int cli_add_synonyms(gx_query_options *o, const cli_args *a, const gx_index *ix);
/* A GPU's answers know neither threshold nor blocks of --approximate: take them out of *o, and say so. */
void cli_settle_approximate(gx_query_options *o, const gx_engine *en);
/* Whether *o asks for what only the CPU engine does; whether for exact answers. */
bool cli_skips_blocks(const gx_query_options *o);
bool cli_is_exact(const gx_query_options *o);
/* The part of a collection that this process searches, set by gpuidx-mpi; NULL: all of it. */
extern const gx_shard *cli_shard;

/* Note, once a process, that signs in the text of a plain query mean nothing, if it has such. */
void cli_note_operators(const char *text, size_t len, const gx_index *ix, const gx_query_options *o);
#define CLI_PLAIN_SIGNS \
    "quotes, + - * and ~ mean nothing in the plain syntax; --syntax=boolean knows +word, -word, word* and word~"

gx_engine_options cli_engine_options(const cli_args *a);
/* Add --devices and --spread, of a command that has them. 0, or the exit code with the message printed. */
int cli_add_devices(gx_engine_options *o, const cli_args *a);
/* Add --resident and --residency-policy, of a command that has them. 0, or the exit code with the message
 * printed. */
int cli_add_residency(gx_engine_options *o, const cli_args *a);
/* Let the engine read the log of --warm, if there is one. 0, or the exit code with the message printed. */
int cli_warm(gx_engine *en, const cli_args *a);
/* Where the index holds impacts and --scorer is not given, make the scorer GX_IMPACT. */
void cli_default_scorer(gx_query_options *o, const cli_args *a, const gx_index *ix);
gx_query_kind cli_query_kind(int syntax); /* of CLI_SYNTAXES */

/* Read "DOCS,TERMS,WEIGHT". false: it is none, and why[] says what is wrong. */
bool cli_read_rm3(gx_rm3_options *out, const char *text, char *why, size_t why_len);
/* The value of --rm3; fb_docs is 0 without it. 0, or the exit code with the message printed: it is
 * malformed, the syntax is boolean, or the index stores no texts. */
int cli_rm3(gx_rm3_options *out, const cli_args *a, const gx_index *ix);

/* Open the index at path (its verification from --check), and an engine on it. 0, or the exit code
 * with the message printed. Where `auto` falls back to the CPU, a note says why with -v. */
int cli_open_index(gx_index **out, const cli_args *a, const char *path);
/* With --fields *ix becomes a view of its fields; else nothing changes. Returns an exit code. */
int cli_view_fields(gx_index **ix, const cli_args *a);
int cli_open_engine(gx_engine **out, const gx_index *ix, const gx_engine_options *options);

/* Name the flags that were given and mean nothing: those of GPUs where none searches, and of algorithms that are not
 * taken. */
void cli_tell_ignored(const cli_args *a, bool gpu);

/* --pair-thresholds, for queries with these options, and how long it took. 0, or the exit code with
 * the message printed. */
int cli_precompute_pair_thresholds(gx_engine *en, const cli_args *a, const gx_query_options *options);

/* Whether the engine was opened on a GPU that has failed since, so that the CPU searches; why says
 * so. */
bool cli_gpu_failed(gx_engine *en, gx_error *why);

#endif
