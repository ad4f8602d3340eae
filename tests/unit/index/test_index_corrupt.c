/* Damaged index files: each is refused, by words that name the header or the section. And files
 * that a writer makes only of more than this machine may hold: they are read. */
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/hash.h"
#include "index/check/check.h"
#include "tests/support/collection.h"

static char dir[] = "/tmp/gx-test-corrupt-XXXXXX";
static char path[64];

/* A file in memory, to be damaged. */
typedef struct image {
    uint8_t *bytes;
    size_t n, max;
} image;

static image whole; /* 1,000 documents, GPU-BP128, titles, texts: some lists have several blocks */
static image small; /* 12 documents, 5 lists of a block each, no titles, no texts */

static image image_load(const char *file)
{
    struct stat s;
    const int fd = open(file, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &s) == 0);
    image im = {malloc((size_t)s.st_size), (size_t)s.st_size, (size_t)s.st_size};
    assert_int_equal(read(fd, im.bytes, im.n), im.n);
    close(fd);
    return im;
}

static image image_copy(const image *from)
{
    image im = {malloc(from->n + 4096), from->n, from->n + 4096};
    memcpy(im.bytes, from->bytes, from->n);
    memset(im.bytes + from->n, 0, 4096);
    return im;
}

static gx_header *header_of(const image *im)
{
    return (gx_header *)(void *)im->bytes;
}

static gx_section *entry(const image *im, uint32_t kind)
{
    gx_section *s = (gx_section *)(void *)(im->bytes + sizeof(gx_header));
    for (uint32_t i = 0; i < header_of(im)->n_sections; ++i)
        if (s[i].kind == kind)
            return &s[i];
    fail_msg("no such section");
    return NULL;
}

static void *bytes_of(const image *im, uint32_t kind)
{
    return im->bytes + entry(im, kind)->offset;
}

/* Make all checksums right again. */
static void reseal(image *im)
{
    gx_header *h = header_of(im);
    gx_section *s = (gx_section *)(void *)(h + 1);
    const uint32_t n = h->n_sections <= GX_MAX_SECTIONS ? h->n_sections : 0;
    for (uint32_t i = 0; i < n; ++i)
        if (s[i].offset <= im->n && s[i].bytes <= im->n - s[i].offset)
            s[i].checksum = gx_hash(im->bytes + s[i].offset, s[i].bytes);
    h->checksum = 0;
    h->checksum = gx_hash(im->bytes, sizeof *h + n * sizeof *s);
}

static void image_store(const image *im)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_int_equal(write(fd, im->bytes, im->n), im->n);
    close(fd);
}

static bool refused(gx_check level, const char *place, const char *reason)
{
    gx_error err = {0};
    const gx_status st = gx_index_verify(path, level, &err);
    if (st == GX_ECORRUPT && strncmp(err.text, path, strlen(path)) == 0 && strstr(err.text, place) &&
        strstr(err.text, reason))
        return true;
    print_error("level %d: %s '%s' does not say '%s' and '%s'\n", level, gx_status_name(st), err.text, place, reason);
    return false;
}

static void assert_refused(gx_check level, const char *place, const char *reason)
{
    assert_true(refused(level, place, reason));
}

static bool names_a_place(const char *text)
{
    return strstr(text, ": header: ") || strstr(text, ": section ");
}

/* ---- checksums ---- */

static void every_flipped_byte_of_header_and_table_is_refused(void **state)
{
    (void)state;
    const image *const images[] = {&small, &whole};
    for (int which = 0; which < 2; ++which) {
        const image *im = images[which];
        const size_t front = sizeof(gx_header) + header_of(im)->n_sections * sizeof(gx_section);
        image_store(im);
        const int fd = open(path, O_WRONLY);
        for (size_t at = 0; at < front; ++at)
            for (int bit = 0; bit < 9; ++bit) {
                const uint8_t flipped = im->bytes[at] ^ (uint8_t)(bit < 8 ? 1 << bit : 0xff);
                gx_error err = {0};
                assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
                if (gx_index_verify(path, GX_CHECK_HEADER, &err) != GX_ECORRUPT || !names_a_place(err.text))
                    fail_msg("byte %zu, bit %d: %s", at, bit, err.text);
                assert_int_equal(pwrite(fd, im->bytes + at, 1, (off_t)at), 1);
            }
        close(fd);
        assert_int_equal(gx_index_verify(path, GX_CHECK_FULL, NULL), GX_OK);
    }
}

static void every_flipped_byte_of_the_file_is_refused(void **state)
{
    (void)state;
    image_store(&small);
    const int fd = open(path, O_WRONLY);
    for (size_t at = 0; at < small.n; ++at) {
        const uint8_t flipped = small.bytes[at] ^ (uint8_t)(1 << at % 8);
        gx_error err = {0};
        gx_index *ix;
        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
        if (gx_index_open(&ix, path, NULL, &err) != GX_ECORRUPT || !names_a_place(err.text))
            fail_msg("byte %zu: %s", at, err.text);
        assert_null(ix);
        assert_int_equal(pwrite(fd, small.bytes + at, 1, (off_t)at), 1);
    }
    close(fd);
}

static void assert_truncation_refused(size_t n)
{
    gx_error err = {0};
    assert_int_equal(truncate(path, (off_t)n), 0);
    if (gx_index_verify(path, GX_CHECK_HEADER, &err) != GX_ECORRUPT || !strstr(err.text, ": header: "))
        fail_msg("truncated to %zu: %s", n, err.text);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    image_store(&whole);
    assert_true(whole.n > 3 * 4096);
    size_t n = whole.n;
    while (n > whole.n - 4096)
        assert_truncation_refused(--n);
    const gx_section *s = (const gx_section *)(const void *)(whole.bytes + sizeof(gx_header));
    /* ever shorter: truncate does not lengthen with the bytes */
    for (uint32_t i = header_of(&whole)->n_sections; i--;) {
        const size_t places[] = {s[i].offset + s[i].bytes + 1,
                                 s[i].offset + s[i].bytes,
                                 s[i].offset + s[i].bytes - 1,
                                 s[i].offset + 1,
                                 s[i].offset,
                                 s[i].offset - 1};
        for (int j = 0; j < 6; ++j)
            if (places[j] < n)
                assert_truncation_refused(n = places[j]);
    }
    for (n = n < 4096 ? n : 4096; n > 0;)
        assert_truncation_refused(--n);
}

static void bytes_behind_the_index_are_refused(void **state)
{
    (void)state;
    image im = image_copy(&small);
    im.n += 1;
    image_store(&im);
    assert_refused(GX_CHECK_HEADER, "header", "bytes follow the index");
    free(im.bytes);
}

static void other_files_are_refused(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_index *ix;
    image im = {(uint8_t *)(uintptr_t) "id\ttitle\ttext\n", 14, 14};
    image_store(&im);
    assert_refused(GX_CHECK_HEADER, "header", "no gpuidx index");
    im.n = 0;
    image_store(&im);
    assert_refused(GX_CHECK_HEADER, "header", "empty");
    assert_int_equal(gx_index_open(&ix, "/tmp/gx-no-such-file.gx", NULL, &err), GX_ENOTFOUND);
    assert_int_equal(gx_index_open(&ix, "/tmp", NULL, &err), GX_ENOTFOUND); /* a folder may be a collection */
    assert_non_null(strstr(err.text, "/tmp is a folder without a MANIFEST"));
    assert_null(ix);
}

/* ---- the rules, one by one: damage with right checksums ---- */

typedef void damage_fn(image *im);

typedef struct rule {
    damage_fn *damage;
    const char *place, *reason;
    gx_check level; /* that finds it */
} rule;

#define H(im) header_of(im)
#define S(im, kind) entry(im, GX_SEC_##kind)
#define U32(im, kind) ((uint32_t *)bytes_of(im, GX_SEC_##kind))
#define LISTS(im) ((gx_list_entry *)bytes_of(im, GX_SEC_LISTS))
#define FRAMES(im) ((gx_text_frame *)bytes_of(im, GX_SEC_TEXT))

/* The first list (term 0) holds every document of whole: 8 blocks; its entries are the first of
 * each array. */
static void newer_version(image *im)
{
    H(im)->version = 2;
}
static void version_0(image *im)
{
    H(im)->version = 0;
}
static void header_size(image *im)
{
    H(im)->header_bytes = 512;
}
static void no_sections(image *im)
{
    H(im)->n_sections = 0;
}
static void many_sections(image *im)
{
    H(im)->n_sections = GX_MAX_SECTIONS + 1;
}
static void fewer_sections(image *im)
{
    H(im)->n_sections -= 1;
}
static void file_size(image *im)
{
    H(im)->file_bytes += 256;
}
static void reserved_header(image *im)
{
    H(im)->reserved[95] = 1;
}
static void reserved_header_too(image *im)
{
    H(im)->reserved0[3] = 1;
}
static void unit_without_flag(image *im)
{
    H(im)->impact_unit = 1e-300;
}
static void unit_without_impacts(image *im)
{
    H(im)->flags = GX_HEADER_UNIT;
    H(im)->impact_unit = 0.5;
}
static void unit_0(image *im)
{
    H(im)->flags = GX_HEADER_UNIT | GX_HEADER_IMPACTS;
}
static void unit_infinite(image *im)
{
    H(im)->flags = GX_HEADER_UNIT | GX_HEADER_IMPACTS;
    H(im)->impact_unit = INFINITY;
}
static void unknown_flag(image *im)
{
    H(im)->flags = 16;
}
static void unknown_flags(image *im)
{
    H(im)->flags = 0x80000001;
}
static void block_len_0(image *im)
{
    H(im)->block_len = 0;
}
static void block_len_long(image *im)
{
    H(im)->block_len = GX_MAX_BLOCK + 1;
}
static void block_len_other(image *im)
{
    H(im)->block_len = 256;
}
static void more_docs(image *im)
{
    H(im)->n_docs += 1;
}
static void most_docs(image *im)
{
    H(im)->n_docs = UINT32_MAX;
}
static void more_terms(image *im)
{
    H(im)->n_terms += 1;
}
static void most_terms(image *im)
{
    H(im)->n_terms = UINT32_MAX;
}
static void more_postings(image *im)
{
    H(im)->n_postings += 1;
}
static void fewer_postings(image *im)
{
    H(im)->n_postings = 1;
}
static void more_tokens(image *im)
{
    H(im)->n_tokens += 1;
}
static void few_tfs(image *im)
{
    H(im)->sum_tfs = 1;
}
static void more_blocks(image *im)
{
    H(im)->n_blocks += 1;
}
static void most_blocks(image *im)
{
    H(im)->n_blocks = (uint64_t)1 << 62;
}
static void device_offset(image *im)
{
    H(im)->device_offset += 256;
}
static void device_bytes(image *im)
{
    H(im)->device_bytes = UINT64_MAX;
}
static void unknown_codec(image *im)
{
    H(im)->codings[0].docids = 250;
}
static void unknown_tf_codec(image *im)
{
    H(im)->codings[3] = (gx_coding){H(im)->codings[0].docids, 251};
}
static void half_a_coding(image *im)
{
    H(im)->codings[15].tfs = H(im)->codings[0].tfs;
}
static void unequal_coding(image *im)
{
    H(im)->codings[1] = (gx_coding){gx_codec_by_name("gpubp256")->id, H(im)->codings[0].tfs};
}

static void section_flags(image *im)
{
    S(im, HEADS)->flags = GX_SECTION_REQUIRED;
}
static void section_offset(image *im)
{
    S(im, HEADS)->offset += 256;
}
static void section_unaligned(image *im)
{
    S(im, HEADS)->offset += 4;
}
static void section_overlap(image *im)
{
    S(im, HEADS)->offset = S(im, LISTS)->offset;
}
static void section_long(image *im)
{
    S(im, TEXT)->bytes += 1;
}
static void section_short(image *im)
{
    S(im, TEXT)->bytes -= 1;
}
static void section_endless(image *im)
{
    S(im, DOC_LENS)->bytes = UINT64_MAX;
}
static void section_far(image *im)
{
    S(im, DOC_LENS)->bytes = (uint64_t)1 << 63;
}
static void section_reserved(image *im)
{
    S(im, META)->reserved[23] = 1;
}
static void section_twice(image *im)
{
    *S(im, TITLES) = (gx_section){GX_SEC_DOC_IDS, GX_SECTION_REQUIRED, S(im, TITLES)->offset, S(im, TITLES)->bytes};
}
static void section_unknown(image *im)
{
    S(im, TITLES)->kind = GX_KIND('N', 'E', 'W', '1'), S(im, META)->kind = GX_KIND('N', 'E', 'W', '2');
}
static void padding(image *im)
{
    im->bytes[S(im, META)->offset + S(im, META)->bytes] = 1;
}
static void swapped(image *im)
{
    gx_section *a = S(im, DOCID_ENDS), *b = S(im, TF_ENDS);
    a->kind = GX_SEC_TF_ENDS;
    b->kind = GX_SEC_DOCID_ENDS;
}
static void no_doc_ids(image *im)
{
    S(im, DOC_IDS)->flags = 0, S(im, DOC_IDS)->kind = GX_KIND('X', 'I', 'D', 'S');
}
static void no_meta(image *im)
{
    S(im, META)->flags = 0, S(im, META)->kind = GX_KIND('X', 'E', 'T', 'A');
}
static void no_doc_lens(image *im)
{
    S(im, DOC_LENS)->flags = GX_SECTION_DEVICE, S(im, DOC_LENS)->kind = GX_KIND('X', 'L', 'E', 'N');
}

static void df_0(image *im)
{
    LISTS(im)[1].df = 0;
}
static void df_huge(image *im)
{
    LISTS(im)[1].df = UINT32_MAX;
}
static void df_more_blocks(image *im)
{
    LISTS(im)[H(im)->n_terms - 1].df = 1000;
}
static void df_one_less(image *im)
{
    LISTS(im)[0].df -= 1;
}
static void first_block(image *im)
{
    LISTS(im)[1].first_block += 1;
}
static void payload_lo(image *im)
{
    LISTS(im)[1].payload_lo -= 1;
}
static void payload_hi(image *im)
{
    LISTS(im)[1].payload_hi = 255;
}
static void coding_none(image *im)
{
    LISTS(im)[2].coding = 1;
}
static void coding_wild(image *im)
{
    LISTS(im)[2].coding = 255;
}
static void docid_param(image *im)
{
    LISTS(im)[2].docid_param = 77;
}
static void tf_param(image *im)
{
    LISTS(im)[2].tf_param = 1;
}
static void rice_param(image *im) /* the greatest, and one more; blocks that are not Rice's are found later */
{
    H(im)->codings[0] = (gx_coding){GX_CODEC_RICE, GX_CODEC_RICE};
    LISTS(im)[1].docid_param = 31;
    LISTS(im)[2].docid_param = 32;
}
static void heads_fall(image *im)
{
    U32(im, HEADS)[3] = U32(im, HEADS)[2];
}
static void head_far(image *im)
{
    U32(im, HEADS)[7] = 1000;
}
static void docid_ends_fall(image *im)
{
    U32(im, DOCID_ENDS)[3] = UINT32_MAX;
}
static void tf_ends_fall(image *im)
{
    U32(im, TF_ENDS)[3] = U32(im, TF_ENDS)[4] + 1;
}
static void tfs_before_docids(image *im)
{
    U32(im, DOCID_ENDS)[7] = U32(im, TF_ENDS)[0] + 1;
}
static void last_list_long(image *im)
{
    U32(im, TF_ENDS)[H(im)->n_blocks - 1] += 1;
}
static void slack(image *im)
{
    ((uint8_t *)U32(im, PAYLOAD))[S(im, PAYLOAD)->bytes - 1] = 1;
}
static void doc_len(image *im)
{
    U32(im, DOC_LENS)[500] += 1;
}
static void meta_no_json(image *im)
{
    *(char *)bytes_of(im, GX_SEC_META) = '[';
}
static void meta_no_analyzer(image *im)
{
    ((char *)bytes_of(im, GX_SEC_META))[2] = 'A';
}
static void meta_other_analyzer(image *im)
{
    memcpy(strstr(bytes_of(im, GX_SEC_META), "whitespace"), "Whitespace", 10);
}
static void terms_fall(image *im)
{
    U32(im, TERMS)[2] = U32(im, TERMS)[1] - 1;
}
static void terms_far(image *im)
{
    U32(im, TERMS)[2] = UINT32_MAX;
}
static void terms_begin(image *im)
{
    U32(im, TERMS)[0] = 1;
}
static void terms_end(image *im)
{
    U32(im, TERMS)[H(im)->n_terms] += 1;
}
static void terms_width(image *im)
{
    S(im, TERMS)->param = 2;
}
static void terms_wide(image *im)
{
    S(im, DOC_IDS)->param = 8;
}
static void ids_fall(image *im)
{
    U32(im, DOC_IDS)[900] = 0;
}
static void titles_end(image *im)
{
    U32(im, TITLES)[1000] -= 1;
}
static uint32_t *slot(image *im, bool full)
{
    uint32_t *s = U32(im, TERM_HASH);
    while ((*s != 0) != full)
        ++s;
    return s;
}
static void hash_wild(image *im)
{
    *slot(im, true) = H(im)->n_terms + 1;
}
static void hash_full(image *im)
{
    *slot(im, false) = 1;
}
static void hash_fewer(image *im)
{
    *slot(im, true) = 0;
}
static void hash_bits(image *im)
{
    S(im, TERM_HASH)->param += 1;
}
static void hash_tiny(image *im)
{
    S(im, TERM_HASH)->param = 0;
}
static void hash_huge(image *im)
{
    S(im, TERM_HASH)->param = 64;
}
static void frame_count(image *im)
{
    S(im, TEXT)->param = UINT64_MAX;
}
static void frame_offset(image *im)
{
    FRAMES(im)[1].offset = UINT64_MAX;
}
static void frame_end(image *im)
{
    FRAMES(im)[S(im, TEXT)->param].offset -= 1;
}
static void frame_begin(image *im)
{
    FRAMES(im)[0].offset = 1;
}
static void frame_docs(image *im)
{
    FRAMES(im)[1].first_doc = 0;
}
static void frame_first(image *im)
{
    FRAMES(im)[0].first_doc = 1;
}
static void frame_last(image *im)
{
    FRAMES(im)[S(im, TEXT)->param].first_doc += 1;
}
static void frame_small(image *im)
{
    FRAMES(im)[0].raw_bytes = 3;
}
static void frame_huge(image *im)
{
    FRAMES(im)[0].raw_bytes = (1u << 30) + (1u << 20) + 1; /* the limit of FORMAT.md, and one more */
}
static void frame_last_size(image *im)
{
    FRAMES(im)[S(im, TEXT)->param].raw_bytes = 1;
}

/* What only decoding shows. */
static void lengths_shifted(image *im)
{
    U32(im, DOC_LENS)[5] += 1, U32(im, DOC_LENS)[6] -= 1;
}
static void tf_sum(image *im)
{
    H(im)->sum_tfs += 1;
}
static void head_moved(image *im)
{
    U32(im, HEADS)[2] += 1;
}
static void gaps_widened(image *im) /* the block's docids then reach past the next head, or n_docs */
{
    const gx_list_entry *e = LISTS(im);
    while (U32(im, DOCID_ENDS)[e->first_block] == 0)
        ++e;
    memset(U32(im, PAYLOAD) + e->payload_lo, 0xff, 4 * U32(im, DOCID_ENDS)[e->first_block]);
}
static void tfs_zeroed(image *im) /* a block of zeros has no words */
{
    const gx_list_entry *e = LISTS(im);
    const uint32_t *docid_ends = U32(im, DOCID_ENDS), *tf_ends = U32(im, TF_ENDS);
    uint32_t last;
    while (last = e->first_block + (e->df - 1) / H(im)->block_len, tf_ends[e->first_block] == docid_ends[last])
        ++e;
    memset(U32(im, PAYLOAD) + e->payload_lo + docid_ends[last], 0, 4 * (tf_ends[e->first_block] - docid_ends[last]));
}
static void term_order(image *im)
{
    const uint32_t *offsets = U32(im, TERMS), n = H(im)->n_terms;
    memcpy((char *)(offsets + n + 1) + offsets[n - 1], "aaaa", 4);
}
static void hash_moved(image *im) /* behind an empty slot, where no search comes */
{
    uint32_t *from = slot(im, true), *to = slot(im, true) + 1;
    while (to[0] || to[-1])
        ++to;
    *to = *from;
    *from = 0;
}
static void text_damaged(image *im)
{
    uint8_t *frames = (uint8_t *)(FRAMES(im) + S(im, TEXT)->param + 1);
    memset(frames + FRAMES(im)[1].offset / 2, 0x55, 40);
}
static void frame_larger(image *im)
{
    FRAMES(im)[0].raw_bytes += 4;
}

static const rule rules[] = {
    {newer_version, "header", "version 2", GX_CHECK_HEADER},
    {version_0, "header", "version 0", GX_CHECK_HEADER},
    {header_size, "header", "512", GX_CHECK_HEADER},
    {no_sections, "header", "0 sections", GX_CHECK_HEADER},
    {many_sections, "header", "65 sections", GX_CHECK_HEADER},
    {fewer_sections, "section PAYL", "padding", GX_CHECK_HEADER},
    {file_size, "header", "truncated", GX_CHECK_HEADER},
    {reserved_header, "header", "reserved", GX_CHECK_HEADER},
    {reserved_header_too, "header", "reserved bytes are not zero", GX_CHECK_HEADER},
    {unit_without_flag, "header", "reserved bytes are not zero", GX_CHECK_HEADER},
    {unit_without_impacts, "header", "impacts have the unit 0.5, and there are none", GX_CHECK_HEADER},
    {unit_0, "header", "impacts have the unit 0", GX_CHECK_HEADER},
    {unit_infinite, "header", "impacts have the unit inf", GX_CHECK_HEADER},
    {unknown_flag, "header", "flags 10 are not known to this program: the index was made by a newer", GX_CHECK_HEADER},
    {unknown_flags, "header", "flags 80000000 are not known", GX_CHECK_HEADER},
    {block_len_0, "header", "blocks of 0", GX_CHECK_HEADER},
    {block_len_long, "header", "blocks of 1025", GX_CHECK_HEADER},
    {block_len_other, "header", "128 and 128 postings, not 256", GX_CHECK_HEADER},
    {more_docs, "section DLEN", "1001 items", GX_CHECK_HEADER},
    {most_docs, "header", "too many", GX_CHECK_HEADER},
    {more_terms, "section LIST", "items of 16", GX_CHECK_HEADER},
    {most_terms, "header", "too many", GX_CHECK_HEADER},
    {more_postings, "section LIST", "postings, the header says", GX_CHECK_STRUCTURE},
    {fewer_postings, "header", "this cannot be", GX_CHECK_HEADER},
    {more_tokens, "section DLEN", "add up to", GX_CHECK_STRUCTURE},
    {few_tfs, "header", "this cannot be", GX_CHECK_HEADER},
    {more_blocks, "section HEAD", "items of 4", GX_CHECK_HEADER},
    {most_blocks, "header", "too many", GX_CHECK_HEADER},
    {device_offset, "header", "device sections", GX_CHECK_HEADER},
    {device_bytes, "header", "device sections", GX_CHECK_HEADER},
    {unknown_codec, "header", "codec 250", GX_CHECK_HEADER},
    {unknown_tf_codec, "header", "codec 251", GX_CHECK_HEADER},
    {half_a_coding, "header", "codec 0", GX_CHECK_HEADER},
    {unequal_coding, "header", "gpubp256", GX_CHECK_HEADER},
    {section_flags, "section HEAD", "flags", GX_CHECK_HEADER},
    {section_offset, "section HEAD", "begins at byte", GX_CHECK_HEADER},
    {section_unaligned, "section HEAD", "begins at byte", GX_CHECK_HEADER},
    {section_overlap, "section HEAD", "begins at byte", GX_CHECK_HEADER},
    {section_long, "section TEXT", "past the file's end", GX_CHECK_HEADER},
    {section_short, "section TEXT", "the last", GX_CHECK_HEADER},
    {section_endless, "section DLEN", "past the file's end", GX_CHECK_HEADER},
    {section_far, "section DLEN", "past the file's end", GX_CHECK_HEADER},
    {section_reserved, "section META", "reserved", GX_CHECK_HEADER},
    {section_twice, "section DIDS", "twice", GX_CHECK_HEADER},
    {section_unknown, "section NEW2", "newer", GX_CHECK_HEADER},
    {padding, "section TERM", "padding", GX_CHECK_HEADER},
    {swapped, "section TEND", "order", GX_CHECK_HEADER},
    {no_doc_ids, "section DIDS", "missing", GX_CHECK_HEADER},
    {no_meta, "section META", "missing", GX_CHECK_HEADER},
    {no_doc_lens, "section DLEN", "missing", GX_CHECK_HEADER},
    {df_0, "section LIST", "list 1 has 0 postings", GX_CHECK_STRUCTURE},
    {df_huge, "section LIST", "list 1 has 4294967295 postings", GX_CHECK_STRUCTURE},
    {df_more_blocks, "section LIST", "past block", GX_CHECK_STRUCTURE},
    {df_one_less, "section LIST", "postings, the header says", GX_CHECK_STRUCTURE},
    {first_block, "section LIST", "list 1 begins at block 9", GX_CHECK_STRUCTURE},
    {payload_lo, "section LIST", "list 1 begins at word", GX_CHECK_STRUCTURE},
    {payload_hi, "section LIST", "list 1 begins at word", GX_CHECK_STRUCTURE},
    {coding_none, "section LIST", "coding 1", GX_CHECK_STRUCTURE},
    {coding_wild, "section LIST", "coding 255", GX_CHECK_STRUCTURE},
    {docid_param, "section LIST", "list 2 has parameter 77 for docids, not 0 to 0", GX_CHECK_STRUCTURE},
    {tf_param, "section LIST", "list 2 has parameter 1 for tfs, not 0 to 0", GX_CHECK_STRUCTURE},
    {rice_param, "section LIST", "list 2 has parameter 32 for docids, not 0 to 31", GX_CHECK_STRUCTURE},
    {heads_fall, "section HEAD", "block 3 of list 0 begins at docid 256, not above 256", GX_CHECK_STRUCTURE},
    {head_far, "section HEAD", "block 7 of list 0 begins at docid 1000, not below 1000", GX_CHECK_STRUCTURE},
    {docid_ends_fall, "section DEND", "block 4 of list 0", GX_CHECK_STRUCTURE},
    {tf_ends_fall, "section TEND", "block 4 of list 0", GX_CHECK_STRUCTURE},
    {tfs_before_docids, "section TEND", "block 0 of list 0", GX_CHECK_STRUCTURE},
    {last_list_long, "section PAYL", "lists take", GX_CHECK_STRUCTURE},
    {slack, "section PAYL", "not zero", GX_CHECK_STRUCTURE},
    {doc_len, "section DLEN", "add up to", GX_CHECK_STRUCTURE},
    {meta_no_json, "section META", "no JSON", GX_CHECK_STRUCTURE},
    {meta_no_analyzer, "section META", "analyzer", GX_CHECK_STRUCTURE},
    {meta_other_analyzer, "section META", "Whitespace", GX_CHECK_STRUCTURE},
    {terms_fall, "section TERM", "string 1 ends at byte", GX_CHECK_STRUCTURE},
    {terms_far, "section TERM", "string 2 ends at byte", GX_CHECK_STRUCTURE},
    {terms_begin, "section TERM", "first string", GX_CHECK_STRUCTURE},
    {terms_end, "section TERM", "last string", GX_CHECK_STRUCTURE},
    {terms_width, "section TERM", "offsets of 2 bytes", GX_CHECK_HEADER},
    {terms_wide, "section DIDS", "string", GX_CHECK_STRUCTURE},
    {ids_fall, "section DIDS", "string 899", GX_CHECK_STRUCTURE},
    {titles_end, "section TITL", "last string", GX_CHECK_STRUCTURE},
    {hash_wild, "section THSH", "a slot holds term", GX_CHECK_STRUCTURE},
    {hash_full, "section THSH", "slots are in use", GX_CHECK_STRUCTURE},
    {hash_fewer, "section THSH", "slots are in use", GX_CHECK_STRUCTURE},
    {hash_bits, "section THSH", "items of 4", GX_CHECK_HEADER},
    {hash_tiny, "section THSH", "2^0 slots", GX_CHECK_HEADER},
    {hash_huge, "section THSH", "2^64 slots", GX_CHECK_HEADER},
    {frame_count, "section TEXT", "frames", GX_CHECK_HEADER},
    {frame_offset, "section TEXT", "frame 1 ends", GX_CHECK_STRUCTURE},
    {frame_end, "section TEXT", "the last frame", GX_CHECK_STRUCTURE},
    {frame_begin, "section TEXT", "frames are of", GX_CHECK_STRUCTURE},
    {frame_docs, "section TEXT", "frame 1 begins at document 0", GX_CHECK_STRUCTURE},
    {frame_first, "section TEXT", "documents 1 to", GX_CHECK_STRUCTURE},
    {frame_last, "section TEXT", "to 1001", GX_CHECK_STRUCTURE},
    {frame_small, "section TEXT", "frame 0 of", GX_CHECK_STRUCTURE},
    {frame_huge, "section TEXT", "frame 0 has 1074790401 bytes, more than 1074790400", GX_CHECK_STRUCTURE},
    {frame_last_size, "section TEXT", "frames are of", GX_CHECK_STRUCTURE},
    {lengths_shifted, "section DLEN", "document 5 has length", GX_CHECK_FULL},
    {tf_sum, "section PAYL", "tfs add up to", GX_CHECK_FULL},
    {head_moved, "section PAYL", "docid block 2 of list 0 ends with docid 384, not below 384", GX_CHECK_FULL},
    {gaps_widened, "section PAYL", "docid block 0 of list", GX_CHECK_FULL},
    {tfs_zeroed, "section PAYL", "is no block of", GX_CHECK_FULL},
    {term_order, "section TERM", "term 8 is not above", GX_CHECK_FULL},
    {hash_moved, "section THSH", "does not lead", GX_CHECK_FULL},
    {text_damaged, "section TEXT", "frame", GX_CHECK_FULL},
    {frame_larger, "section TEXT", "frame 0", GX_CHECK_FULL},
};

static void each_rule_of_the_structure_is_checked(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i) {
        const rule *r = &rules[i];
        gx_error err = {0};
        image im = image_copy(&whole);
        r->damage(&im);
        reseal(&im);
        image_store(&im);
        wrong += !refused(r->level, r->place, r->reason) || !refused(GX_CHECK_FULL, r->place, r->reason);
        /* and no sooner than said: otherwise it is not this rule that found it */
        const gx_check before = r->level == GX_CHECK_FULL ? GX_CHECK_CHECKSUM : GX_CHECK_HEADER;
        if (r->level != GX_CHECK_HEADER && gx_index_verify(path, before, &err) != GX_OK) {
            print_error("%s, %s: already %s\n", r->place, r->reason, err.text);
            ++wrong;
        }
        free(im.bytes);
    }
    assert_int_equal(wrong, 0);
}

static void a_parameter_that_a_section_does_not_use_is_0(void **state)
{
    (void)state;
    static const struct {
        uint32_t kind;
        const char *place;
    } rows[] = {
        {GX_SEC_PAYLOAD, "section PAYL"},    {GX_SEC_LISTS, "section LIST"},   {GX_SEC_HEADS, "section HEAD"},
        {GX_SEC_DOCID_ENDS, "section DEND"}, {GX_SEC_TF_ENDS, "section TEND"}, {GX_SEC_DOC_LENS, "section DLEN"},
        {GX_SEC_META, "section META"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        image im = image_copy(&whole);
        entry(&im, rows[i].kind)->param = 9;
        reseal(&im);
        image_store(&im);
        assert_refused(GX_CHECK_HEADER, rows[i].place, "its parameter is 9, not 0");
        free(im.bytes);
    }
}

/* What only a full check finds, an index that is opened with less may have. A rewrite of it names
 * the file, or makes an index without the damage (the hash table is made anew). */
static void a_rewrite_of_a_damaged_index_names_it_or_mends_it(void **state)
{
    (void)state;
    int refusals = 0, wrong = 0;
    char to[80];
    snprintf(to, sizeof to, "%s.new", path);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i)
        for (int with_order = 0; with_order < 2 && rules[i].level == GX_CHECK_FULL; ++with_order) {
            gx_error err = {0};
            gx_index *ix;
            gx_order_options order = GX_ORDER_OPTIONS;
            gx_rewrite_options opt = GX_REWRITE_OPTIONS;
            image im = image_copy(&whole);
            rules[i].damage(&im);
            reseal(&im);
            image_store(&im);
            uint32_t *docids = malloc(header_of(&im)->n_docs * sizeof *docids);
            assert_int_equal(gx_index_open(&ix, path, NULL, &err), GX_OK);
            opt.docid_codec = "gpuvbyte128";
            gx_status st = with_order ? gx_order_make(ix, &order, docids, &err) : GX_OK;
            opt.new_docids = with_order ? docids : NULL;
            if (st == GX_OK)
                st = gx_index_rewrite(ix, to, &opt, &err);
            const bool left = access(to, F_OK) == 0;
            if (st == GX_OK)
                st = gx_index_verify(to, GX_CHECK_FULL, &err) ? GX_EINTERNAL : GX_OK;
            else if (left || strncmp(err.text, path, strlen(path)) != 0)
                st = GX_EINTERNAL;
            refusals += st == GX_ECORRUPT;
            if (st != GX_ECORRUPT && !(st == GX_OK && rules[i].damage == hash_moved)) {
                print_error("%s, %s, %s an order: %s \"%s\"\n", rules[i].place, rules[i].reason,
                            with_order ? "with" : "without", gx_status_name(st), err.text);
                ++wrong;
            }
            gx_index_close(ix);
            unlink(to);
            free(docids);
            free(im.bytes);
        }
    assert_int_equal(wrong, 0);
    assert_true(refusals >= 12);
}

static void resealing_alone_changes_nothing(void **state)
{
    (void)state;
    image im = image_copy(&whole);
    reseal(&im);
    assert_memory_equal(im.bytes, whole.bytes, whole.n);
    free(im.bytes);
}

/* small and one section more, behind the others. */
static image with_section(uint32_t kind, uint32_t flags)
{
    image im = image_copy(&small);
    gx_header *h = header_of(&im);
    gx_section *s = (gx_section *)(void *)(h + 1);
    im.n += -im.n % GX_ALIGN;
    s[h->n_sections++] = (gx_section){.kind = kind, .flags = flags, .offset = im.n, .bytes = 1000};
    for (int i = 0; i < 1000; ++i)
        im.bytes[im.n + (size_t)i] = (uint8_t)i;
    im.n += 1000;
    h->file_bytes = im.n;
    reseal(&im);
    return im;
}

#define FUTURE GX_KIND('F', 'U', 'T', '1')

static void an_unknown_optional_section_is_skipped(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_index *ix;
    image im = with_section(FUTURE, 0);
    image_store(&im);
    if (gx_index_verify(path, GX_CHECK_FULL, &err) != GX_OK)
        fail_msg("%s", err.text);
    assert_int_equal(gx_index_open(&ix, path, NULL, &err), GX_OK);
    gx_index_sizes sizes;
    gx_index_measure(ix, &sizes);
    assert_string_equal(sizes.sections[sizes.n_sections - 1].name, "FUT1");
    assert_false(sizes.sections[sizes.n_sections - 1].known);
    gx_index_close(ix);
    im.bytes[im.n - 1] ^= 1; /* its checksum holds nevertheless */
    image_store(&im);
    assert_refused(GX_CHECK_CHECKSUM, "section FUT1", "checksum");
    free(im.bytes);
}

static void an_unknown_required_section_is_refused(void **state)
{
    (void)state;
    image im = with_section(FUTURE, GX_SECTION_REQUIRED);
    image_store(&im);
    assert_refused(GX_CHECK_HEADER, "section FUT1", "newer");
    free(im.bytes);
    im = with_section(FUTURE, 4);
    image_store(&im);
    assert_refused(GX_CHECK_HEADER, "section FUT1", "flags");
    free(im.bytes);
    im = with_section(FUTURE, GX_SECTION_DEVICE);
    image_store(&im);
    assert_refused(GX_CHECK_HEADER, "section FUT1", "apart");
    free(im.bytes);
}

static void reserved_sections_are_skipped_or_refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t kind, flags;
        const char *place, *reason; /* NULL: it is skipped */
    } cases[] = {
        {GX_SEC_ATTRIBUTES, 0, "section ATTV", "it is missing"},
        {GX_SEC_POSITIONS, GX_SECTION_REQUIRED, "section POSN", "its flags are 1"},
        {GX_SEC_POSITION_ENDS, GX_SECTION_REQUIRED, "section PEND", "its flags are 1"},
        {GX_SEC_ATTRIBUTES, GX_SECTION_REQUIRED, "section ATTR", "its flags are 1"},
        {GX_SEC_DELETES, GX_SECTION_REQUIRED, "section DELS", "newer"},
        {GX_SEC_DELETES, 0, "section DELS", "its flags are 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        gx_error err = {0};
        image im = with_section(cases[i].kind, cases[i].flags);
        image_store(&im);
        if (cases[i].place)
            assert_refused(GX_CHECK_HEADER, cases[i].place, cases[i].reason);
        else if (gx_index_verify(path, GX_CHECK_FULL, &err) != GX_OK)
            fail_msg("%s", err.text);
        free(im.bytes);
    }
}

/* Damage that only GX_CHECK_FULL finds in advance, met on the way:
 * postings that were given are sound. */
static void a_walk_along_a_damaged_list_ends_with_its_block(void **state)
{
    (void)state;
    void (*const damages[])(image * im) = {head_moved, gaps_widened};
    for (size_t i = 0; i < sizeof damages / sizeof *damages; ++i) {
        gx_error err = {0};
        gx_index *ix;
        gx_status st = GX_OK;
        image im = image_copy(&whole);
        damages[i](&im);
        reseal(&im);
        image_store(&im);
        assert_int_equal(gx_index_open(&ix, path, NULL, &err), GX_OK);
        for (uint32_t t = 0; t < ix->n_terms && st == GX_OK; ++t) {
            gx_postings *p;
            const uint32_t *docids;
            uint32_t n = 1, least = 0;
            assert_int_equal(gx_postings_open(&p, ix, t, &err), GX_OK);
            while (n > 0 && (st = gx_postings_next(p, &docids, NULL, &n, &err)) == GX_OK)
                for (uint32_t d = 0; d < n; ++d) {
                    assert_true(docids[d] >= least && docids[d] < ix->n_docs);
                    least = docids[d] + 1;
                }
            if (st != GX_OK)
                assert_int_equal(gx_postings_next(p, &docids, NULL, &n, &err), st); /* it does not go on */
            gx_postings_close(p);
        }
        assert_int_equal(st, GX_ECORRUPT);
        assert_non_null(strstr(err.text, "does not decode to rising docids below 1000"));
        gx_index_close(ix);
        free(im.bytes);
    }
}

/* What a writer makes of more than 4 GiB of strings. */
static void offsets_of_eight_bytes_are_read(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_index *ix, *narrow;
    image_store(&small);
    assert_int_equal(gx_index_open(&narrow, path, NULL, &err), GX_OK);
    image im = image_copy(&small);
    gx_section *s = entry(&im, GX_SEC_DOC_IDS); /* the last */
    const uint32_t n = header_of(&im)->n_docs, *offsets = bytes_of(&small, GX_SEC_DOC_IDS);
    uint64_t *wide = bytes_of(&im, GX_SEC_DOC_IDS);
    memcpy(wide + n + 1, offsets + n + 1, offsets[n]);
    for (uint32_t i = 0; i <= n; ++i)
        wide[i] = offsets[i];
    s->param = 8;
    s->bytes += 4 * (n + 1);
    im.n += 4 * (n + 1);
    header_of(&im)->file_bytes = im.n;
    reseal(&im);
    unlink(path); /* narrow has the old file mapped */
    image_store(&im);
    if (gx_index_open(&ix, path, NULL, &err) != GX_OK)
        fail_msg("%s", err.text);
    for (uint32_t d = 0; d < n; ++d) {
        size_t len, wanted_len;
        const char *id = gx_index_doc_id(ix, d, &len), *wanted = gx_index_doc_id(narrow, d, &wanted_len);
        assert_int_equal(len, wanted_len);
        assert_memory_equal(id, wanted, len);
    }
    gx_index_close(narrow);
    gx_index_close(ix);
    wide[5] = (uint64_t)1 << 63;
    reseal(&im);
    image_store(&im);
    assert_refused(GX_CHECK_STRUCTURE, "section DIDS", "string 5 ends");
    free(im.bytes);
}

/* small with its lists 2^31 words apart: a sparse file of 32 GiB. */
static void lists_beyond_2_to_the_32_words_are_found(void **state)
{
    (void)state;
    enum { LISTS = 5, GAP_SHIFT = 31 };
    gx_error err = {0};
    gx_index *near, *far;
    image im = image_copy(&small);
    gx_header *h = header_of(&im);
    gx_section *s = (gx_section *)(void *)(h + 1);
    const uint64_t gap = (uint64_t)1 << GAP_SHIFT, moved = (LISTS - 1) * gap * sizeof(uint32_t);
    const size_t behind = s[1].offset; /* of the second section: those behind the payload */
    assert_int_equal(h->n_terms, LISTS);
    assert_int_equal(h->n_blocks, LISTS);
    image_store(&small);
    assert_int_equal(gx_index_open(&near, path, NULL, &err), GX_OK);
    unlink(path);
    uint32_t *tf_ends = bytes_of(&im, GX_SEC_TF_ENDS);
    gx_list_entry *lists = bytes_of(&im, GX_SEC_LISTS);
    for (uint32_t t = 0; t < LISTS; ++t) {
        const uint64_t payload = lists[t].payload_lo + t * gap;
        tf_ends[t] += t + 1 < LISTS ? (uint32_t)gap : 0; /* the block has room that it does not use */
        lists[t].payload_lo = (uint32_t)payload;
        lists[t].payload_hi = (uint8_t)(payload >> 32);
    }
    assert_int_equal(lists[LISTS - 1].payload_hi, 2);
    for (uint32_t i = 1; i < h->n_sections; ++i) {
        s[i].checksum = gx_hash(im.bytes + s[i].offset, s[i].bytes);
        s[i].offset += moved;
    }
    s[0].bytes += moved;
    h->device_bytes += moved;
    h->file_bytes += moved;
    h->checksum = 0;
    h->checksum = gx_hash(im.bytes, sizeof *h + h->n_sections * sizeof *s);
    const int fd = open(path, O_WRONLY | O_CREAT, 0666);
    if (pwrite(fd, im.bytes + behind, im.n - behind, (off_t)(behind + moved)) < 0)
        skip(); /* a file system without files so long */
    assert_int_equal(pwrite(fd, im.bytes, s[0].offset, 0), s[0].offset);
    for (uint32_t t = 0; t < LISTS; ++t) {
        const uint64_t words = near->tf_ends[t], from = near->lists[t].payload_lo;
        const off_t to = (off_t)(s[0].offset + (from + t * gap) * sizeof(uint32_t));
        assert_int_equal(pwrite(fd, near->payload + from, words * sizeof(uint32_t), to), words * sizeof(uint32_t));
    }
    close(fd);
    gx_index_options opt = GX_INDEX_OPTIONS;
    opt.check = GX_CHECK_STRUCTURE;
    if (gx_index_open(&far, path, &opt, &err) != GX_OK)
        fail_msg("%s", err.text);
    for (uint32_t t = 0; t < LISTS; ++t) {
        uint32_t a[GX_MAX_BLOCK], b[GX_MAX_BLOCK];
        const gx_list l = gx_index_list(far, t), wanted = gx_index_list(near, t);
        assert_int_equal(gx_list_decode_docids(&l, 0, a), gx_list_decode_docids(&wanted, 0, b));
        assert_memory_equal(a, b, l.df * sizeof *a);
        gx_list_decode_tfs(&l, 0, a);
        gx_list_decode_tfs(&wanted, 0, b);
        assert_memory_equal(a, b, l.df * sizeof *a);
    }
    gx_index_close(near);
    gx_index_close(far);
    free(im.bytes);
}

static int make_images(void **state)
{
    (void)state;
    gx_error err = {0};
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/x.gx", dir);
    collection *c = collection_make(4, 1000, 9);
    c->with_titles = c->with_texts = true;
    for (uint32_t d = 1; d < c->n_docs; ++d)
        snprintf(c->titles[d], sizeof c->titles[d], "Title %u", d);
    assert_int_equal(collection_write(c, path, gx_codec_by_name("gpubp128"), NULL, &err), GX_OK);
    collection_free(c);
    whole = image_load(path);
    c = collection_make(4, 12, 5);
    c->with_texts = false;
    memset(c->titles, 0, c->n_docs * sizeof *c->titles);
    assert_int_equal(collection_write(c, path, gx_codec_by_name("gpuvbyte128"), NULL, &err), GX_OK);
    collection_free(c);
    small = image_load(path);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    free(whole.bytes);
    free(small.bytes);
    unlink(path);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resealing_alone_changes_nothing),
        cmocka_unit_test(every_flipped_byte_of_header_and_table_is_refused),
        cmocka_unit_test(every_flipped_byte_of_the_file_is_refused),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(bytes_behind_the_index_are_refused),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(each_rule_of_the_structure_is_checked),
        cmocka_unit_test(a_parameter_that_a_section_does_not_use_is_0),
        cmocka_unit_test(a_rewrite_of_a_damaged_index_names_it_or_mends_it),
        cmocka_unit_test(an_unknown_optional_section_is_skipped),
        cmocka_unit_test(an_unknown_required_section_is_refused),
        cmocka_unit_test(reserved_sections_are_skipped_or_refused),
        cmocka_unit_test(a_walk_along_a_damaged_list_ends_with_its_block),
        cmocka_unit_test(offsets_of_eight_bytes_are_read),
        cmocka_unit_test(lists_beyond_2_to_the_32_words_are_found),
    };
    return cmocka_run_group_tests(tests, make_images, remove_dir);
}
