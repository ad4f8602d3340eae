#include "query/gpu/batch.cuh"

#include "engine/clock.h"

namespace gx {

/* queries of a run's first sub-batch, and the most by which the next one is larger */
constexpr uint32_t FIRST_SUB_BATCH = 128, SUB_BATCH_GROWTH = 8;
/* Runs of up to so many queries have fine items (describe_items), of up to so many blocks, and are
 * one sub-batch if they fit. If other sessions search too, fewer do: their queries keep the GPU busy,
 * and long items cost less. Eight sessions with batches of 64 on an H100: 448,000 queries/s with fine
 * items, 540,000 with long ones. Retries have longer items: they begin with a threshold, and other
 * sessions keep the GPU busy meanwhile. OR top 1,000 with eight sessions on an H200, 2 % of whose
 * queries are run again: 223,000 queries/s with short items, 235,000 with long ones. */
constexpr uint32_t MAX_FINE_QUERIES = 512, MAX_FINE_AMONG_OTHERS = 128, FINE_ITEM_BLOCKS = 4;

/* ---- a session's memory ---- */

static void close_sub_batch(sub_batch *p)
{
    if (p->stream)
        (void)cudaStreamSynchronize(p->stream);
    for (cudaEvent_t e : p->events) {
        if (e)
            (void)cudaEventDestroy(e);
    }
    if (p->stream)
        (void)cudaStreamDestroy(p->stream);
    free(p->requests);
}

void close_batches(gpu_session *x, batch_space *b)
{
    for (sub_batch &p : b->sub_batches)
        close_sub_batch(&p);
    session_free(&x->memory, (void **)&b->device.base, b->device.bytes);
    session_free_pinned(&x->memory, (void **)&b->pinned.base, b->pinned.bytes);
}

bool batches_end(batch_space *b)
{
    bool good = true;
    for (sub_batch &p : b->sub_batches)
        good = cudaStreamSynchronize(p.stream) == cudaSuccess && good;
    return good;
}

static gx_status open_sub_batch(sub_batch *p, gx_error *err)
{
    p->requests = (described_request *)malloc(MAX_QUERIES * sizeof *p->requests);
    if (!p->requests)
        return gx_fail(err, GX_ENOMEM, "no memory for a GPU session");
    TRY("making a stream", cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking));
    for (int i = 0; i < 4; ++i)
        TRY("making an event",
            cudaEventCreateWithFlags(&p->events[i], i == 3 ? cudaEventDisableTiming : cudaEventDefault));
    return GX_OK;
}

gx_status open_batches(gpu_session *x, batch_space *b, gx_error *err)
{
    for (sub_batch &p : b->sub_batches)
        TRY_STATUS(open_sub_batch(&p, err));
    TRY_STATUS(grow_device(&x->memory, &b->device, SESSION_FIRST_BYTES, SESSION_FIRST_BYTES, err));
    return grow_pinned(&x->memory, &b->pinned, SESSION_FIRST_PINNED_BYTES, err);
}

/* Bytes of a session's device memory and pinned memory. */
struct byte_footprint {
    uint64_t device, pinned;
};

static uint64_t max_bytes(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The first n requests of a list, and the memory that they need as a sub-batch. */
struct selection {
    uint32_t n, sorted_k; /* sorted_k: the greatest k above SORTED_K, or 0 */
    size_t sort_bytes;
    uint64_t largest_items; /* the most items of a single request */
    request_footprint sum;
};

constexpr uint64_t MAX_CUTS = 16; /* most arrays in either memory */

/* Returns the most bytes that the arrays of lay_out take. */
static byte_footprint count_bytes(const gpu_prepared_index *index, const selection *s)
{
    const request_footprint *n = &s->sum;
    const uint64_t described = n->queries * sizeof(gpu_query) + n->terms * sizeof(gpu_term) +
                               n->program_words * sizeof(uint32_t) + n->ranges * sizeof(item_range) +
                               n->tiled * sizeof(tiled_query) + n->documents * sizeof(selected_documents);
    const uint64_t device = described + QUEUE_WORDS * 4 + n->queries * (sizeof(gpu_query_state) + BINS * 4) +
                            n->candidates * 8 + n->tiled * (index->rows.n_tiles * sizeof(uint2) + sizeof(uint32_t)) +
                            (s->sorted_k ? n->answers * 8 + s->sort_bytes : 0);
    const uint64_t pinned =
        described + n->queries * sizeof(gpu_query_state) + (n->answers <= MAX_ANSWERS ? n->answers * 8 : 0);
    return {device + MAX_CUTS * CUT_ALIGNMENT, pinned + MAX_CUTS * CUT_ALIGNMENT};
}

/* Places the sub-batch's arrays, except its items, in its memory. Returns the bytes that they
 * take. */
static byte_footprint lay_out(const gpu_prepared_index *index, sub_batch *p, const selection *s, char *device,
                              char *pinned)
{
    bump_allocator d = {device, 0}, h = {pinned, 0};
    const request_footprint *n = &s->sum;
    cut(&h, &p->queries, n->queries);
    cut(&h, &p->tiled, n->tiled);
    cut(&h, &p->documents, n->documents);
    cut(&h, &p->terms, n->terms);
    cut(&h, &p->programs, n->program_words);
    cut(&h, &p->ranges, n->ranges);
    cut(&d, &p->d_queries, n->queries); /* one copy sets these six */
    cut(&d, &p->d_tiled, n->tiled);
    cut(&d, &p->d_documents, n->documents);
    cut(&d, &p->d_terms, n->terms);
    cut(&d, &p->d_programs, n->program_words);
    cut(&d, &p->d_ranges, n->ranges);
    cut(&h, &p->results, n->queries);
    cut(&h, &p->counts, N_COUNTS);
    p->answers = NULL;
    if (n->answers <= MAX_ANSWERS)
        cut(&h, &p->answers, n->answers);
    cut(&d, &p->d_states, n->queries);
    cut(&d, &p->d_histograms, n->queries * BINS);
    cut(&d, &p->d_next, N_COUNTERS);
    cut(&d, &p->d_queue, QUEUE_WORDS);
    cut(&d, &p->d_order, n->tiled * index->rows.n_tiles);
    cut(&d, &p->d_live, n->tiled);
    cut(&d, &p->d_counts, N_COUNTS);
    cut(&d, &p->d_candidates, n->candidates);
    p->d_answers = NULL;
    p->sort_scratch = NULL;
    p->sort_bytes = s->sort_bytes;
    if (s->sorted_k) {
        cut(&d, &p->d_answers, n->answers);
        cut(&d, &p->sort_scratch, s->sort_bytes);
    }
    return {d.used, h.used};
}

static uint64_t item_bytes(uint64_t n)
{
    return (n * sizeof(gpu_item) + CUT_ALIGNMENT - 1) / CUT_ALIGNMENT * CUT_ALIGNMENT;
}

/* Returns the longest free piece of `bytes` bytes. used[n] are the taken segments, in the order in
 * which they were given out. */
static segment longest_free(uint64_t bytes, const segment *used, uint32_t n)
{
    if (n == 0)
        return {0, bytes};
    const uint64_t begin = used[0].begin, end = used[n - 1].end;
    if (end <= begin && n > 1)
        return {end, begin};
    return bytes - end >= begin ? segment{end, bytes} : segment{0, begin};
}

/* Finds the longest pieces of both memories that no sub-batch in flight uses. */
static void find_room(const batch_space *b, uint32_t turn, segment *device, segment *pinned)
{
    segment d[N_SUB_BATCHES], h[N_SUB_BATCHES];
    uint32_t n = 0;
    for (uint32_t i = 1; i < N_SUB_BATCHES; ++i) { /* the oldest first */
        const sub_batch *p = &b->sub_batches[(turn + i) % N_SUB_BATCHES];
        if (p->busy) {
            d[n] = p->device;
            h[n++] = p->pinned;
        }
    }
    *device = longest_free(b->device.bytes, d, n);
    *pinned = longest_free(b->pinned.bytes, h, n);
}

/* Selects as many of requests[n] as fit into `room`. Up to a quarter of it is reserved for items,
 * whose number is known only after the description. */
static selection select_requests(const gpu_session *x, const plan_batch *pb, const request *requests, uint32_t n,
                                 byte_footprint room)
{
    selection s = {};
    while (s.n < n) {
        const gx_plan *plan = &pb->plans[requests[s.n].plan];
        const request_footprint one = count_request(x->s->ix, plan, &requests[s.n], x->fine);
        /* the OR may be left out */
        const uint64_t items = requests[s.n].op == GX_OP_AND_OR ? one.items / 2 : one.items;
        selection more = s;
        more.n += 1;
        more.sum = {
            s.sum.queries + one.queries, s.sum.terms + one.terms,           s.sum.ranges + one.ranges,
            s.sum.items + one.items,     s.sum.candidates + one.candidates, s.sum.answers + one.answers,
            s.sum.tiled + one.tiled,     s.sum.documents + one.documents,   s.sum.program_words + one.program_words};
        more.largest_items = items > s.largest_items ? items : s.largest_items;
        if (plan->k > SORTED_K && plan->k > s.sorted_k) {
            more.sorted_k = plan->k;
            more.sort_bytes = sort_scratch_bytes(plan->k);
        }
        const byte_footprint bytes = count_bytes(x->s, &more);
        const uint64_t quarter = room.device / 4, all = item_bytes(more.sum.items),
                       least = item_bytes(more.largest_items), usual = all < quarter ? all : quarter;
        if (more.sum.queries > MAX_QUERIES || more.sum.terms > MAX_TERMS ||
            bytes.device + (least > usual ? least : usual) > room.device || bytes.pinned > room.pinned ||
            (s.n && more.sum.answers > MAX_ANSWERS))
            break;
        s = more;
    }
    return s;
}

/* ---- describing ---- */

/* Returns the number of items of query q if they are as long as possible. */
static uint64_t least_items(const gpu_session *x, const sub_batch *p, uint32_t q)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < p->n_essential[q]; ++i)
        n += p->terms[p->queries[q].first_term + i].at.n_blocks / max_item_blocks(x->s->ix) +
             (x->fine ? 1 + FINE_ITEMS : 1);
    return n;
}

static uint32_t choose_item_blocks(const gpu_session *x, const sub_batch *p)
{
    uint64_t blocks = 0, lists = 0;
    const uint32_t most = max_item_blocks(x->s->ix), warps = x->s->grid * 8;
    const uint32_t wanted = x->fine && !x->retries_run && most > FINE_ITEM_BLOCKS ? FINE_ITEM_BLOCKS : most;
    for (uint32_t q = 0; q < p->n_queries; ++q) {
        for (uint32_t i = 0; i < p->n_essential[q]; ++i)
            blocks += p->terms[p->queries[q].first_term + i].at.n_blocks;
        lists += p->n_essential[q];
    }
    uint32_t n = 1;
    while (n < wanted && blocks / (2 * n) >= 4ull * warps)
        n *= 2;
    while (n < most && blocks / n + lists * (x->fine ? 1 + FINE_ITEMS : 1) > p->item_room)
        n *= 2;
    return n < most ? n : most;
}

/* Adds a query to the sub-batch. *items counts the items that the sub-batch has at least. If the
 * query's items do not fit, sets *fits to false and leaves the sub-batch as it was. */
static gx_status add_if_it_fits(gpu_session *x, sub_batch *p, const query_form &form, uint64_t *items, uint32_t *number,
                                bool *fits, gx_error *err)
{
    const uint32_t n_terms = p->n_terms, n_tiled = p->n_tiled, n_documents = p->n_documents,
                   n_program_words = p->n_program_words;
    const uint64_t n_candidates = p->n_candidates, n_answers = p->n_answers;
    TRY_STATUS(add_query(x, p, form, number, err));
    const uint64_t more = least_items(x, p, *number);
    *fits = *items + more <= p->item_room;
    if (*fits) {
        *items += more;
    } else {
        p->n_queries = *number;
        p->n_terms = n_terms;
        p->n_tiled = n_tiled;
        p->n_documents = n_documents;
        p->n_program_words = n_program_words;
        p->n_candidates = n_candidates;
        p->n_answers = n_answers;
    }
    return GX_OK;
}

/* Describes as many of requests[n] as the sub-batch takes, and sets *taken to their number. An OR
 * that does not fit beside its AND is left out. The host runs it later if it is needed. */
static gx_status describe_requests(gpu_session *x, sub_batch *p, const plan_batch *pb, const request *requests,
                                   uint32_t n, uint32_t *taken, gx_error *err)
{
    uint64_t items = 0;
    bool fits = true;
    begin_description(p);
    p->takes_documents = true;
    for (uint32_t i = 0; i < n; ++i) {
        const query_form form = {&pb->plans[requests[i].plan], &requests[i], requests[i].op != GX_OP_OR, NO_QUERY};
        described_request *dr = &p->requests[i];
        *dr = {requests[i], 0, NO_QUERY};
        TRY_STATUS(add_if_it_fits(x, p, form, &items, &dr->first, &fits, err));
        if (!fits)
            break;
        ++p->n_requests;
    }
    p->n_first = p->n_queries;
    p->n_first_tiled = p->n_tiled;
    p->n_first_documents = p->n_documents;
    *taken = p->n_requests;
    for (uint32_t i = 0; i < p->n_requests; ++i) {
        described_request *dr = &p->requests[i];
        uint32_t second = NO_QUERY;
        if (dr->of.op != GX_OP_AND_OR)
            continue;
        const query_form form = {&pb->plans[dr->of.plan], &dr->of, false, dr->first};
        TRY_STATUS(add_if_it_fits(x, p, form, &items, &second, &fits, err));
        dr->second = fits ? second : NO_QUERY;
    }
    return GX_OK;
}

/* ---- running a sub-batch ---- */

/* Sorts the answers that select did not sort. Their candidates are no longer needed, so that
 * memory serves as the destination. */
static gx_status sort_large(sub_batch *p, gx_error *err)
{
    for (uint32_t q = 0; q < p->n_queries; ++q) {
        const gpu_query *Q = &p->queries[q];
        if (Q->k <= SORTED_K)
            continue;
        TRY("sorting results", sort_keys(p->sort_scratch, p->sort_bytes, p->d_answers + Q->answer,
                                         p->d_candidates + Q->candidates, Q->k, p->stream));
        TRY("sorting results", cudaMemcpyAsync(p->d_answers + Q->answer, p->d_candidates + Q->candidates,
                                               (size_t)Q->k * 8, cudaMemcpyDeviceToDevice, p->stream));
    }
    return GX_OK;
}

/* Launches the search by tiles, of queries without an `after` (stage 0) or with one. */
static void launch_tiles(const gpu_session *x, const sub_batch *p, const gpu_batch &R, uint32_t stage,
                         uint32_t *counters)
{
    const gpu_prepared_index *s = x->s;
    const uint32_t begin = stage ? p->n_first_tiled : 0, end = stage ? p->n_tiled : p->n_first_tiled;
    uint32_t middle = begin;
    while (middle < end && p->tiled[middle].linear)
        ++middle;
    const uint32_t from[] = {begin, middle, end};
    for (uint32_t i = 0; i < 2; ++i) {
        const tiled_batch B = {p->d_tiled + from[i], from[i + 1] - from[i],
                               p->d_order + (size_t)from[i] * s->rows.n_tiles, p->d_live + from[i],
                               counters + 2 * stage + i};
        search_by_tiles(s->X, s->coding, R, s->rows, B, i == 0, s->tiled, p->stream);
    }
}

/* Launches the search of filters' documents, of queries without an `after` (stage 0) or with one. */
static void launch_documents(const gpu_session *x, const sub_batch *p, const gpu_batch &R, uint32_t stage,
                             uint32_t *counters)
{
    const uint32_t begin = stage ? p->n_first_documents : 0, end = stage ? p->n_documents : p->n_first_documents;
    const documents_batch B = {p->d_documents + begin, end - begin, p->document_items[stage], counters + stage};
    search_documents(x->s->X, x->s->coding, R, B, x->s->documents, p->stream);
}

/* Numbers the items of the documents of each launch. */
static void number_documents(sub_batch *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_documents; ++i) {
        n = i == p->n_first_documents ? 0 : n;
        p->documents[i].first_item = n;
        n += p->documents[i].n_items;
        p->document_items[i >= p->n_first_documents] = n;
    }
}

/* Puts queries with linear scorers before the others. */
static void sort_tiled(tiled_query *tiled, uint32_t n)
{
    uint32_t linear = 0;
    for (uint32_t i = 0; i < n; ++i) {
        if (tiled[i].linear) {
            const tiled_query q = tiled[linear];
            tiled[linear++] = tiled[i];
            tiled[i] = q;
        }
    }
}

/* Launches the search four times: short queries, long queries, and both for queries with an
 * `after`. */
static void launch_search(const gpu_session *x, const sub_batch *p, gpu_batch R)
{
    const gpu_prepared_index *s = x->s;
    const gpu_item *items = R.items;
    uint32_t *next_item = R.next_item;
    for (uint32_t l = 0; l < N_LAUNCHES; ++l) {
        const uint32_t begin = l ? p->items_end[l - 1] : 0;
        R.items = items + begin;
        R.n_items = p->items_end[l] - begin;
        R.next_item = next_item + l;
        if (p->phrases)
            search_phrases(s->X, s->coding, s->positions.of.plain != NULL, R, s->phrases, p->stream);
        else
            search_batch(s->X, s->coding, R, l % 2, p->any_tests, s->grid, p->stream);
        if (l % 2) {
            launch_tiles(x, p, R, l / 2, next_item + N_LAUNCHES);
            launch_documents(x, p, R, l / 2, next_item + N_LAUNCHES + N_TILED_LAUNCHES);
        }
        if (p->any_exhaustive && l == 1)
            search_exhaustively(s->X, s->coding, R, 0, p->n_first, p->stream);
        if (p->any_exhaustive && l == 3)
            search_exhaustively(s->X, s->coding, R, p->n_first, p->n_queries - p->n_first, p->stream);
    }
}

/* If a batch whose lists go in turn has so many warps a query, each block of a list of up to SHARED_BLOCKS is
 * MAX_SHARES items. */
constexpr uint32_t WARPS_TO_SHARE = 32, SHARED_BLOCKS = 64;

/* Returns the most items of the queries' lists, if they go in turn: of the first ones, and of the later ones, of which
 * those of up to `spread` blocks may become items of a block each. */
static uint64_t count_turn_items(const sub_batch *p, uint32_t item_blocks, uint32_t spread, uint64_t *later)
{
    uint64_t first = 0;
    *later = 0;
    for (uint32_t q = 0; q < p->n_queries; ++q) {
        const gpu_term *t = &p->terms[p->queries[q].first_term];
        first += t->at.n_blocks / item_blocks + 1 + FINE_ITEMS + FEW_ITEMS + MAX_SHARES * p->shared;
        for (uint32_t i = 1; i < p->n_essential[q]; ++i) {
            const uint32_t n = t[i].at.n_blocks;
            *later += n <= p->shared ? n * MAX_SHARES : count_items(n, n <= spread ? 1 : item_blocks);
        }
    }
    return first + *later;
}

/* Lets the lists of the sub-batch's queries enter its queue in turn, in items of item_blocks blocks, if the queries are
 * few, short and alone on the GPU, and have work for all of its warps: their thread blocks stay until the batch ends,
 * and nobody else's can run meanwhile. Sets p->in_turn, and if it is true p->shared, spread and n_later. */
static void choose_turns(const gpu_session *x, sub_batch *p, uint32_t item_blocks)
{
    const uint32_t warps = x->s->grid * SEARCH_WARPS;
    p->in_turn = x->fine && x->alone && item_blocks >= FINE_ITEM_BLOCKS && !x->retries_run &&
                 p->n_first == p->n_queries && !p->n_documents && !p->any_tests && !p->phrases &&
                 lists_go_in_turn(x->s->coding);
    for (uint32_t q = 0; q < p->n_queries && p->in_turn; ++q)
        p->in_turn = p->n_essential[q] && !p->end_doc[q] &&
                     count_room(p->queries[q].n_terms, p->queries[q].flags) <= SHORT_QUERY_TERMS;
    if (!p->in_turn)
        return;
    /* blocks in host memory would be copied once a share */
    p->shared = p->n_queries * WARPS_TO_SHARE <= warps && !x->s->payload.pinned ? SHARED_BLOCKS : 0;
    p->spread = SPREAD_BLOCKS;
    uint64_t all = count_turn_items(p, item_blocks, p->spread, &p->n_later);
    if (all > p->item_room) {
        p->spread = 0;
        all = count_turn_items(p, item_blocks, p->spread, &p->n_later);
    }
    p->in_turn = all <= p->item_room;
}

static gx_status launch_sub_batch(gpu_session *x, sub_batch *p, gx_error *err)
{
    uint32_t active[MAX_QUERIES];
    pending_list lists[MAX_QUERIES];
    const cudaStream_t stream = p->stream;
    const uint32_t item_blocks = choose_item_blocks(x, p);
    p->direct = p->d_answers == NULL;
    choose_turns(x, p, item_blocks);
    for (uint32_t l = 0; l < N_LAUNCHES; ++l) {
        const uint32_t first = l < 2 ? 0 : p->n_first, n = l < 2 ? p->n_first : p->n_queries - p->n_first;
        describe_items(p, first, n, l % 2, item_blocks, x->fine, {active, lists});
        p->items_end[l] = p->n_items;
    }
    const uint32_t room = p->n_items + (p->in_turn ? (uint32_t)p->n_later : 0);
    p->device.end = p->device.end - item_bytes(p->item_room) + item_bytes(room);
    list_queue L = {};
    if (p->in_turn)
        L = {p->d_items, p->d_queue, p->n_items, room, p->n_queries, item_blocks, p->shared, p->spread};
    number_documents(p);
    sort_tiled(p->tiled, p->n_first_tiled);
    sort_tiled(p->tiled + p->n_first_tiled, p->n_tiled - p->n_first_tiled);

    const gpu_batch R = {p->d_queries,    p->d_terms,
                         p->d_items,      0,
                         p->d_next,       p->d_states,
                         p->d_histograms, NULL,
                         p->d_candidates, p->direct ? (unsigned long long *)p->answers : p->d_answers,
                         p->results,      p->d_counts,
                         p->d_programs,   x->s->positions.device};
    TRY("copying queries",
        cudaMemcpyAsync(p->d_queries, p->queries, (size_t)((char *)(p->ranges + p->n_ranges) - (char *)p->queries),
                        cudaMemcpyHostToDevice, stream));
    TRY("timing", cudaEventRecord(p->events[0], stream));
    begin_batch(R, {p->d_ranges, p->n_ranges, p->n_queries, p->d_items, p->n_items}, L, stream);
    if (p->in_turn)
        search_batch_in_turn(x->s->X, R, L, x->s->grid, stream);
    else
        launch_search(x, p, R);
    TRY("starting a search", cudaGetLastError());
    TRY("timing", cudaEventRecord(p->events[1], stream));
    if (p->any_select || p->any_exhaustive)
        select_best(R, 0, p->n_queries, stream);
    if (!p->direct) {
        TRY_STATUS(sort_large(p, err));
        if (p->answers)
            TRY("copying results",
                cudaMemcpyAsync(p->answers, p->d_answers, p->n_answers * 8, cudaMemcpyDeviceToHost, stream));
    }
    TRY("timing", cudaEventRecord(p->events[2], stream));
    TRY("copying results", cudaMemcpyAsync(p->counts, R.counts, N_COUNTS * 8, cudaMemcpyDeviceToHost, stream));
    TRY("timing", cudaEventRecord(p->events[3], stream));
    x->calls.parts += 1;
    p->busy = true;
    return GX_OK;
}

/* Collects the answer of a request, or appends the request to the retries. */
static gx_status collect_request(gpu_session *x, sub_batch *p, const described_request *dr, const plan_batch *pb,
                                 gx_error *err)
{
    const bool by_and = dr->of.op == GX_OP_AND_OR;
    const bool falls = by_and && p->results[dr->first].count < p->queries[dr->first].k;
    if (pb->work)
        pb->work->and_fell_to_or += falls;
    if (falls && dr->second == NO_QUERY)
        return push_retry(x, {dr->of.plan, GX_OP_OR, 0, 0, dr->of.tiled, dr->of.few, 0}, err);
    return collect_query(x, p, dr, falls ? dr->second : dr->first,
                         !by_and ? dr->of.op
                         : falls ? GX_OP_OR
                                 : GX_OP_AND,
                         pb->hits, err);
}

static gx_status collect_sub_batch(gpu_session *x, sub_batch *p, const plan_batch *pb, gx_error *err)
{
    bool cancelled = false;
    gx_search_stats *work = pb->work;
    if (!p->busy)
        return GX_OK;
    p->busy = false;
    TRY("searching", wait_for_event(&x->calls, p->events[3], &pb->plans[p->requests[0].of.plan], &cancelled));
    if (cancelled)
        return gx_fail(err, GX_ECANCELLED, "cancelled");
    const double t0 = gx_clock_seconds();
    gx_status st = GX_OK;
    if (p->counts[COUNT_UNREADABLE])
        st = gx_fail(err, GX_ECORRUPT, "%s: positions are damaged", x->s->ix->path);
    for (uint32_t i = 0; i < p->n_requests && st == GX_OK; ++i)
        st = collect_request(x, p, &p->requests[i], pb, err);
    if (work) {
        float ms = 0;
        work->blocks_decoded += p->counts[COUNT_DECODED];
        work->lookups += p->counts[COUNT_LOOKUPS];
        work->driven += p->n_first_documents;
        work->tested -= p->n_first_documents;
        work->binned += p->n_early;
        if (cudaEventElapsedTime(&ms, p->events[0], p->events[1]) == cudaSuccess)
            work->seconds[GX_SEARCH_SCORE] += 1e-3 * ms;
        if (cudaEventElapsedTime(&ms, p->events[1], p->events[2]) == cudaSuccess)
            work->seconds[GX_SEARCH_SELECT] += 1e-3 * ms;
        work->seconds[GX_SEARCH_COPY_OUT] += gx_clock_seconds() - t0;
    }
    return st;
}

/* ---- a run ---- */

/* Collects the oldest sub-batch in flight other than sub_batches[turn]. Returns false if there is
 * none. */
static bool collect_oldest(gpu_session *x, batch_space *b, uint32_t turn, const plan_batch *pb, gx_status *st,
                           gx_error *err)
{
    for (uint32_t i = 1; i < N_SUB_BATCHES; ++i) {
        sub_batch *p = &b->sub_batches[(turn + i) % N_SUB_BATCHES];
        if (p->busy) {
            *st = collect_sub_batch(x, p, pb, err);
            return true;
        }
    }
    return false;
}

/* The requests of a run. Those before `at` have been launched. */
struct request_list {
    const request *requests;
    uint32_t n, at;
};

/* Grows the session's memory after not all requests fitted. No sub-batch is in flight. The new
 * size holds all requests of the run with all their items, and is at least twice the old size, so
 * that growth is rare. It stays within the session's limit, unless the next request alone needs
 * more. */
static gx_status grow(gpu_session *x, batch_space *b, const plan_batch *pb, const request_list *l, bool one_must_fit,
                      gx_error *err)
{
    const byte_footprint any = {UINT64_MAX, UINT64_MAX}, most = {SESSION_DEVICE_BYTES, SESSION_PINNED_BYTES};
    const selection one = select_requests(x, pb, l->requests + l->at, 1, any),
                    all = select_requests(x, pb, l->requests, l->n, most);
    const uint64_t items = item_bytes(one.largest_items);
    const byte_footprint least = count_bytes(x->s, &one);
    byte_footprint f = count_bytes(x->s, &all);
    f.device = max_bytes(f.device + item_bytes(all.sum.items), 2 * b->device.bytes);
    f.pinned = max_bytes(f.pinned, 2 * b->pinned.bytes);
    if (all.n < l->n || f.device > most.device)
        f.device = most.device;
    if (all.n < l->n || f.pinned > most.pinned)
        f.pinned = most.pinned;
    TRY_STATUS(grow_device(&x->memory, &b->device, one_must_fit ? least.device + items : 0,
                           max_bytes(f.device, least.device + items), err));
    return grow_pinned(&x->memory, &b->pinned, max_bytes(f.pinned, least.pinned), err);
}

/* Which sub-batch is filled, and with which requests. */
struct filling {
    uint32_t turn; /* of sub_batches */
    const plan_batch *pb;
    const request *requests; /* [wanted] */
    uint32_t wanted;
};

/* Describes some of the requests in the free memory and sets *taken to their number. It is 0 if
 * not even one fits, or with may_wait if so few fit that the host should first collect a
 * sub-batch. */
static gx_status fill_sub_batch(gpu_session *x, batch_space *b, const filling &f, bool may_wait, uint32_t *taken,
                                gx_error *err)
{
    sub_batch *p = &b->sub_batches[f.turn];
    const plan_batch *const pb = f.pb;
    const request *const requests = f.requests;
    const uint32_t wanted = f.wanted;
    segment d, h;
    *taken = 0;
    find_room(b, f.turn, &d, &h);
    byte_footprint room = {d.end - d.begin, h.end - h.begin};
    selection s = select_requests(x, pb, requests, wanted, room);
    /* take half of the memory, so that the host describes one half while the GPU works on the
     * other */
    if (s.n < wanted) {
        const byte_footprint half = {b->device.bytes / 2, b->pinned.bytes / 2};
        if (may_wait && (room.device < half.device || room.pinned < half.pinned))
            return GX_OK;
        const byte_footprint less = {room.device < half.device ? room.device : half.device,
                                     room.pinned < half.pinned ? room.pinned : half.pinned};
        const selection fewer = select_requests(x, pb, requests, wanted, less);
        if (fewer.n) {
            s = fewer;
            room = less;
        }
    }
    if (s.n == 0)
        return GX_OK;
    const byte_footprint bytes = lay_out(x->s, p, &s, b->device.base + d.begin, b->pinned.base + h.begin);
    p->d_items = (gpu_item *)(b->device.base + d.begin + bytes.device);
    p->item_room = (room.device - bytes.device) / CUT_ALIGNMENT * CUT_ALIGNMENT / sizeof(gpu_item);
    p->device = {d.begin, d.begin + bytes.device + item_bytes(p->item_room)};
    p->pinned = {h.begin, h.begin + bytes.pinned};
    return describe_requests(x, p, pb, requests, s.n, taken, err);
}

/* Fills the sub-batch with as many of the requests, which are the next of the list, as fit, at
 * least one. */
static gx_status fill_next(gpu_session *x, batch_space *b, const filling &f, const request_list *l, uint32_t *taken,
                           gx_error *err)
{
    const uint32_t turn = f.turn, wanted = f.wanted;
    const plan_batch *const pb = f.pb;
    gx_status st = GX_OK;
    bool waits = true;
    *taken = 0;
    for (;;) {
        TRY_STATUS(fill_sub_batch(x, b, f, waits, taken, err));
        const bool small = b->pinned.bytes < SESSION_PINNED_BYTES ||
                           (b->device.bytes < SESSION_DEVICE_BYTES && budget_left(x->memory.budget) >= LEAST_GROWTH);
        if (*taken == wanted || (*taken && !(small && waits)))
            return GX_OK;
        if (collect_oldest(x, b, turn, pb, &st, err)) {
            if (st != GX_OK)
                return st;
            continue;
        }
        if (!waits && *taken == 0) {
            const gx_plan *plan = &pb->plans[f.requests[0].plan];
            return gx_fail(err, GX_ECUDA,
                           "GPU: a query of %u terms and k = %u is larger than the session's memory; "
                           "use the CPU engine",
                           plan->n_terms, plan->k);
        }
        if (small || *taken == 0)
            TRY_STATUS(grow(x, b, pb, l, *taken == 0, err));
        waits = false; /* the memory has its final size */
    }
}

gx_status run_batch(gpu_session *x, batch_space *b, const plan_batch *pb, const request *requests, uint32_t n,
                    gx_error *err)
{
    gx_status st = GX_OK;
    const uint32_t running = __atomic_load_n(&x->s->running, __ATOMIC_RELAXED);
    const bool busy = running > 1;
    x->alone = !busy;
    x->fine = n <= MAX_FINE_QUERIES && (!busy || n * running <= MAX_FINE_AMONG_OTHERS);
    /* The first sub-batch is small, so that the GPU starts early. The following ones are large,
     * because few launches cost less than many. If other sessions keep the GPU busy, or the queries
     * are few, one launch of everything is best. */
    const uint32_t first_size = busy || n <= MAX_FINE_QUERIES ? MAX_QUERIES : FIRST_SUB_BATCH;
    for (uint32_t at = 0, turn = 0, most = first_size; at < n && st == GX_OK; turn = (turn + 1) % N_SUB_BATCHES,
                  most = SUB_BATCH_GROWTH * most < MAX_QUERIES ? SUB_BATCH_GROWTH * most : MAX_QUERIES) {
        sub_batch *p = &b->sub_batches[turn];
        if ((st = collect_sub_batch(x, p, pb, err)) != GX_OK)
            break;
        const gx_plan *plan = &pb->plans[requests[at].plan];
        if (plan->cancel && plan->cancel(plan->user)) {
            st = gx_fail(err, GX_ECANCELLED, "cancelled");
            break;
        }
        const double t0 = gx_clock_seconds();
        uint32_t taken = 0;
        const request_list l = {requests, n, at};
        const filling f = {turn, pb, requests + at, n - at < most + most / 2 ? n - at : most};
        st = fill_next(x, b, f, &l, &taken, err);
        if (st == GX_OK)
            st = launch_sub_batch(x, p, err);
        for (uint32_t i = 0; i < taken; ++i)
            add_list_stats(x, &pb->plans[requests[at + i].plan], pb->work);
        if (pb->work)
            pb->work->seconds[GX_SEARCH_COPY_IN] += gx_clock_seconds() - t0;
        at += taken;
    }
    for (sub_batch &p : b->sub_batches) { /* after a failure too, nothing may be in flight when this returns */
        if (st == GX_OK)
            st = collect_sub_batch(x, &p, pb, err);
        else
            (void)wait_for_stream(&x->calls, p.stream);
        p.busy = false;
    }
    return st;
}

} // namespace gx
