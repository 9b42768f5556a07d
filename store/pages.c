#include "store/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store.h"

enum { PAGE_BRANCH = 1, PAGE_LEAF = 2, PAGE_OVERFLOW = 4, PAGE_META = 8 };
enum { NODE_BIG = 1, NODE_TREE = 2 };
enum { TREE_INTEGER_KEYS = 8 };
enum { PAGE_HEADER = 16, NODE_HEADER = 8, DEPTH_MAX = 32, PROBLEMS_MAX = 20, TRIES = 100 };
static const uint32_t MAGIC = 0xBEEFC0DE, VERSION = 1;

struct page_header {
	uint64_t number;
	uint16_t pad, flags;
	union {
		struct {
			uint16_t lower, upper; /* of the room between the places of nodes and the nodes */
		};
		uint32_t pages; /* of an overflow page: how many it takes */
	};
};
struct node_header {
	uint16_t low, high, flags, key_size; /* leaf: length of the value; branch: page number, with flags as its upper part */
};
struct tree {
	uint32_t page_size; /* of the free tree: the page size of the file */
	uint16_t flags, depth;
	uint64_t branches, leaves, overflows, entries, root;
};
enum { TREE_FREE, TREE_MAIN, TREES };
struct meta {
	uint32_t magic, version;
	uint64_t address, map_size;
	struct tree trees[TREES];
	uint64_t last_page, transaction;
};
static const uint64_t NO_PAGE = UINT64_MAX;

struct walk {
	const uint8_t *file;
	size_t page_size;
	uint64_t last_page;
	uint8_t *seen; /* by page: 1 in use, 2 free */
	FILE *out;
	struct pages_totals *totals;
	struct tree found; /* what the tree at hand turned out to have */
	const char *name;  /* of that tree */
	bool integer_keys, has_trees;
	const uint8_t *last_key; /* what the next key must be above, NULL at first */
	size_t last_key_size;
	bool may_equal; /* it is a branch's, which the next key may equal */
};

static void problem(struct walk *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void problem(struct walk *w, const char *format, ...)
{
	va_list args;
	if (w->totals->problems++ >= PROBLEMS_MAX)
		return;
	va_start(args, format);
	fputs("check: ", w->out);
	vfprintf(w->out, format, args);
	fputc('\n', w->out);
	va_end(args);
}

static const uint8_t *page_at(const struct walk *w, uint64_t number)
{
	return w->file + number * w->page_size;
}

/* Takes pages into account as `use`; false when one lies beyond the account or is taken already. */
static bool take_pages(struct walk *w, uint64_t first, uint64_t count, uint8_t use)
{
	if (first <= 1 || first > w->last_page || count == 0 || count > w->last_page - first + 1) {
		problem(w, "%s names page %llu, of %llu", w->name, (unsigned long long)first, (unsigned long long)w->last_page + 1);
		return false;
	}
	for (uint64_t i = first; i < first + count; i++) {
		if (w->seen[i]) {
			problem(w, "%s names page %llu, which is %s", w->name, (unsigned long long)i, w->seen[i] == 1 ? "in use elsewhere" : "free");
			return false;
		}
		w->seen[i] = use;
	}
	*(use == 1 ? &w->totals->live : &w->totals->free) += count;
	return true;
}

static int compare_keys(const struct walk *w, const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
	uint64_t x, y;
	if (w->integer_keys && a_size == sizeof x && b_size == sizeof y) {
		memcpy(&x, a, sizeof x);
		memcpy(&y, b, sizeof y);
		return (x > y) - (x < y);
	}
	int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
	return order ? order : (a_size > b_size) - (a_size < b_size);
}

static void walk_tree(struct walk *w, const char *name, const struct tree *t, bool has_trees);

/* A free list: how many, then page numbers, largest first. */
static void take_free_list(struct walk *w, const uint8_t *value, size_t size)
{
	uint64_t count, number, before = UINT64_MAX;
	if (size < sizeof count || (memcpy(&count, value, sizeof count), count > size / sizeof number - 1)) {
		problem(w, "a list of free pages has %zu bytes", size);
		return;
	}
	for (uint64_t i = 1; i <= count; i++, before = number) {
		memcpy(&number, value + i * sizeof number, sizeof number);
		if (number >= before)
			problem(w, "a list of free pages is out of order");
		take_pages(w, number, 1, 2);
	}
}

static void take_named_tree(struct walk *w, const uint8_t *key, size_t key_size, const uint8_t *value, size_t size)
{
	struct tree t;
	char name[64];
	snprintf(name, sizeof name, "table %.*s", (int)(key_size < 40 ? key_size : 40), (const char *)key);
	if (size != sizeof t || (memcpy(&t, value, sizeof t), t.flags != 0 || t.page_size != 0)) {
		problem(w, "%s has an account of another kind", name);
		return;
	}
	struct walk inner = *w;
	walk_tree(&inner, name, &t, false);
}

/* A value of a leaf, wherever it lies; NULL when it lies nowhere. */
static const uint8_t *value_of(struct walk *w, const struct node_header *n, const uint8_t *data, size_t size)
{
	struct page_header h;
	uint64_t number;
	if (!(n->flags & NODE_BIG))
		return data;
	memcpy(&number, data, sizeof number);
	uint64_t pages = (PAGE_HEADER - 1 + size) / w->page_size + 1;
	if (!take_pages(w, number, pages, 1))
		return NULL;
	memcpy(&h, page_at(w, number), sizeof h);
	if (h.number != number || h.flags != PAGE_OVERFLOW || h.pages != pages) {
		problem(w, "page %llu is not the overflow page of %llu that %s wants", (unsigned long long)number, (unsigned long long)pages, w->name);
		return NULL;
	}
	w->found.overflows += pages;
	return page_at(w, number) + PAGE_HEADER;
}

/* Keys ascend from leaf to leaf; a branch's key lies above all keys before it, and not above any after it. */
static void check_order(struct walk *w, uint64_t number, const uint8_t *key, size_t size, bool leaf)
{
	int order = w->last_key ? compare_keys(w, w->last_key, w->last_key_size, key, size) : -1;
	if (order > 0 || (order == 0 && !w->may_equal))
		problem(w, "page %llu: keys of %s are out of order", (unsigned long long)number, w->name);
	w->last_key = key;
	w->last_key_size = size;
	w->may_equal = !leaf;
}

static void walk_leaf_node(struct walk *w, uint64_t number, const struct node_header *n, const uint8_t *key)
{
	size_t size = n->low | (size_t)n->high << 16;
	const uint8_t *value = value_of(w, n, key + n->key_size, size);
	check_order(w, number, key, n->key_size, true);
	w->found.entries++;
	if ((n->flags & ~(NODE_BIG | NODE_TREE)) || (n->flags & NODE_TREE ? !w->has_trees : w->has_trees))
		problem(w, "page %llu: a node of %s is of another kind", (unsigned long long)number, w->name);
	else if (n->flags & NODE_TREE && value)
		take_named_tree(w, key, n->key_size, value, size);
	else if (value && w->integer_keys)
		take_free_list(w, value, size);
}

static void walk_page(struct walk *w, uint64_t number, unsigned depth);

/* What a node takes of its page; 0 when it does not fit in. */
static size_t node_size(const struct walk *w, const uint8_t *page, size_t at, bool leaf, struct node_header *n)
{
	if (at % 2 || at + NODE_HEADER > w->page_size)
		return 0;
	memcpy(n, page + at, sizeof *n);
	size_t value = !leaf ? 0 : n->flags & NODE_BIG ? sizeof(uint64_t) : n->low | (size_t)n->high << 16;
	size_t size = (NODE_HEADER + n->key_size + value + 1) & ~(size_t)1;
	return size <= w->page_size - at ? size : 0;
}

static void walk_nodes(struct walk *w, uint64_t number, const struct page_header *h, unsigned depth)
{
	const uint8_t *page = page_at(w, number);
	bool leaf = h->flags == PAGE_LEAF;
	size_t count = (h->lower - PAGE_HEADER) / 2u, taken = 0;
	for (size_t i = 0; i < count; i++) {
		uint16_t at;
		struct node_header n;
		memcpy(&at, page + PAGE_HEADER + 2 * i, sizeof at);
		size_t size = at >= h->upper ? node_size(w, page, at, leaf, &n) : 0;
		if (size == 0) {
			problem(w, "page %llu: a node of %s lies outside its page", (unsigned long long)number, w->name);
			return;
		}
		taken += size;
		const uint8_t *key = page + at + NODE_HEADER;
		if (leaf) {
			walk_leaf_node(w, number, &n, key);
			continue;
		}
		if (i > 0) /* the first of a branch stands for whatever is smaller */
			check_order(w, number, key, n.key_size, false);
		walk_page(w, n.low | (uint64_t)n.high << 16 | (uint64_t)n.flags << 32, depth + 1);
	}
	if (taken != w->page_size - h->upper)
		problem(w, "page %llu: nodes of %s do not fill their part of the page", (unsigned long long)number, w->name);
}

static void walk_page(struct walk *w, uint64_t number, unsigned depth)
{
	struct page_header h;
	if (!take_pages(w, number, 1, 1))
		return;
	memcpy(&h, page_at(w, number), sizeof h);
	if (h.number != number || (h.flags != PAGE_LEAF && h.flags != PAGE_BRANCH) || h.lower < PAGE_HEADER + 2 || h.lower % 2 || h.upper < h.lower ||
	    h.upper > w->page_size) {
		problem(w, "page %llu is not a page of %s", (unsigned long long)number, w->name);
		return;
	}
	*(h.flags == PAGE_LEAF ? &w->found.leaves : &w->found.branches) += 1;
	if ((h.flags == PAGE_LEAF) != (depth == w->found.depth))
		problem(w, "page %llu is at another depth than %s has", (unsigned long long)number, w->name);
	else
		walk_nodes(w, number, &h, depth);
}

static void walk_tree(struct walk *w, const char *name, const struct tree *t, bool has_trees)
{
	w->name = name;
	w->has_trees = has_trees;
	w->integer_keys = t->flags == TREE_INTEGER_KEYS;
	w->last_key = NULL;
	w->found = (struct tree){.depth = t->depth};
	if (t->root == NO_PAGE ? t->depth != 0 : t->depth == 0 || t->depth > DEPTH_MAX) {
		problem(w, "%s cannot be %u pages deep", name, t->depth);
		return;
	}
	if (t->root != NO_PAGE)
		walk_page(w, t->root, 1);
	if (w->found.branches != t->branches || w->found.leaves != t->leaves || w->found.overflows != t->overflows || w->found.entries != t->entries)
		problem(w, "%s has %llu entries in %llu pages, not %llu in %llu as its account says", name, (unsigned long long)w->found.entries,
			(unsigned long long)(w->found.branches + w->found.leaves + w->found.overflows), (unsigned long long)t->entries,
			(unsigned long long)(t->branches + t->leaves + t->overflows));
}

/* ---- the two pages at the head ---- */

/* States take the two pages in turn, so what stands there are neighbours. */
static bool metas_hold(const struct walk *w, const struct meta m[2])
{
	for (unsigned i = 0; i < 2; i++) {
		struct page_header h;
		memcpy(&h, page_at(w, i), sizeof h);
		if (h.number != i || h.flags != PAGE_META || m[i].magic != MAGIC || m[i].version != VERSION ||
		    m[i].trees[TREE_FREE].page_size != w->page_size || m[i].trees[TREE_FREE].flags != TREE_INTEGER_KEYS || m[i].trees[TREE_MAIN].flags != 0 ||
		    m[i].trees[TREE_MAIN].page_size != 0 || m[i].address != 0)
			return false;
	}
	bool fresh = m[0].transaction == 0 && m[1].transaction == 0;
	return fresh || (m[0].transaction % 2 == 0 && m[1].transaction % 2 == 1 &&
			 (m[0].transaction == m[1].transaction + 1 || m[1].transaction == m[0].transaction + 1));
}

static void read_metas(const struct walk *w, struct meta m[2])
{
	for (unsigned i = 0; i < 2; i++)
		memcpy(&m[i], page_at(w, i) + PAGE_HEADER, sizeof m[i]);
}

static void walk_state(struct walk *w, const struct meta *m, uint8_t **live)
{
	w->last_page = m->last_page;
	w->seen = xcalloc(m->last_page + 1, 1);
	w->seen[0] = w->seen[1] = 1;
	w->totals->live = 2;
	walk_tree(w, "the tree of tables", &m->trees[TREE_MAIN], true);
	walk_tree(w, "the list of free pages", &m->trees[TREE_FREE], false);
	if (live)
		*live = w->seen;
	else
		free(w->seen);
}

/* Walks the state that `txn` pins, if the head of the file, mapped as it is now, has its account. */
static bool walk_pinned(struct walk *w, MDB_txn *txn, size_t size, uint8_t **live)
{
	struct meta m[2];
	read_metas(w, m);
	const struct meta *mine = &m[m[1].transaction == mdb_txn_id(txn)];
	if (!metas_hold(w, m) || mine->transaction != mdb_txn_id(txn))
		return false;
	if (mine->last_page >= size / w->page_size)
		problem(w, "the file is shorter than its own account says");
	else
		walk_state(w, mine, live);
	return true;
}

/* 1 done, 0 a writer was in the middle of the head, or past it, or the head is damaged; -1 failed. */
static int walk_once(struct walk *w, struct store *st, uint8_t **live, struct err *e)
{
	MDB_txn *txn = NULL;
	struct stat info;
	bool done = false;
	int fd, rc = mdb_txn_begin(st->env, NULL, MDB_RDONLY, &txn);
	if (rc)
		return store_error(st, rc, "cannot begin", e);
	void *map = MAP_FAILED;
	if (mdb_env_get_fd(st->env, &fd) == 0 && fstat(fd, &info) == 0)
		map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		err_errno(e, st->file, "cannot map");
	} else {
		w->file = map;
		done = walk_pinned(w, txn, (size_t)info.st_size, live);
		munmap(map, (size_t)info.st_size);
	}
	mdb_txn_abort(txn);
	return e->code ? -1 : done;
}

static int walk_newest(struct walk *w, struct store *st, uint8_t **live, struct err *e)
{
	MDB_stat env;
	int done = 0;
	mdb_env_stat(st->env, &env);
	w->page_size = env.ms_psize;
	for (int tries = 0; tries < TRIES && done == 0; tries++) {
		if (tries > 0)
			usleep(1000);
		done = walk_once(w, st, live, e);
	}
	if (done == 0)
		problem(w, "the two pages at the head of the file do not belong together");
	return done < 0 ? -1 : 0;
}

int pages_check(const char *directory, FILE *out, struct pages_totals *totals, uint8_t **live, struct err *e)
{
	struct store st;
	struct walk w = {.out = out, .totals = totals};
	*totals = (struct pages_totals){0};
	int rc = store_open(&st, directory, STORE_BARE, e) || walk_newest(&w, &st, live, e) ? -1 : 0;
	store_close(&st);
	return rc;
}
