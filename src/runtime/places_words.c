/*
 * Places in words. A warning names the first rank that it is about and counts the others, so that a thousand ranks
 * bound alike make one line; its advice is in the words of the launcher that started them. Options are those of
 * mpirun(1) of Open MPI, of MPICH's Hydra (-bind-to -help) and of srun(1).
 */
#include "runtime/places.h"

#include <string.h>

#include "base/memory.h"

/* What is told of one node. */
typedef struct node_row {
    const char *host;
    int ranks, cores, threads; /**< threads: of all its ranks */
    int fewest, most;          /**< threads of a rank */
} node_row;

static const char *plural(int count) { return count == 1 ? "" : "s"; }

static node_row sum_node(const cvy_places *places, int node)
{
    node_row row = {0};
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (int i = 0; i < places->ranks; i++) {
        const cvy_place *p = &places->place[i];
        if (p->node == node) {
            row.host = row.ranks ? row.host : p->host;
            row.fewest = row.ranks && row.fewest < p->threads ? row.fewest : p->threads;
            row.most = row.most > p->threads ? row.most : p->threads;
            row.threads += p->threads;
            row.ranks++;
            CPU_OR(&cores, &cores, &p->cores);
        }
    }
    row.cores = CPU_COUNT(&cores);
    return row;
}

/* Whether a rank is the first of its node. */
static bool is_first(const cvy_places *places, int rank)
{
    for (int i = 0; i < rank; i++) {
        if (places->place[i].node == places->place[rank].node) {
            return false;
        }
    }
    return true;
}

/* ---- the table ---- */

static void add_threads(cvy_text *text, const node_row *row)
{
    if (row->fewest != row->most) {
        cvy_text_add(text, "%d to ", row->fewest);
    }
    cvy_text_add(text, "%d thread%s", row->most, plural(row->most));
}

/* Add up the rows of all nodes; false where they differ. */
static bool sum_nodes(const cvy_places *places, node_row *sum_out)
{
    node_row first = {0}, sum = {0};
    bool alike = true;
    for (int i = 0; i < places->ranks; i++) {
        if (is_first(places, i)) {
            node_row row = sum_node(places, places->place[i].node);
            first = i == 0 ? row : first;
            alike = alike && row.ranks == first.ranks && row.cores == first.cores && row.fewest == first.fewest &&
                    row.most == first.most;
            sum.cores += row.cores;
            sum.threads += row.threads;
        }
    }
    sum.fewest = first.fewest;
    sum.most = first.most;
    *sum_out = sum;
    return alike;
}

static void add_rows(const cvy_places *places, cvy_text *text)
{
    char host[CVY_WORD_TEXT];
    int width = 0;
    for (int i = 0; i < places->ranks; i++) {
        int length = (int)strlen(cvy_print_word(places->place[i].host, host));
        width = length > width ? length : width;
    }
    for (int i = 0; i < places->ranks; i++) {
        if (is_first(places, i)) {
            node_row row = sum_node(places, places->place[i].node);
            cvy_text_add(text, "\n%-*s  %d rank%s x ", width, cvy_print_word(row.host, host), row.ranks,
                         plural(row.ranks));
            add_threads(text, &row);
            cvy_text_add(text, " on %d core%s", row.cores, plural(row.cores));
        }
    }
}

void cvy_places_print(const cvy_places *places, cvy_text *text)
{
    node_row sum;
    bool alike = sum_nodes(places, &sum);
    cvy_text_add(text, "%d rank%s on %d node%s", places->ranks, plural(places->ranks), places->nodes,
                 plural(places->nodes));
    if (alike) {
        cvy_text_add(text, " x ");
        add_threads(text, &sum);
    } else {
        cvy_text_add(text, ", %d threads", sum.threads);
    }
    cvy_text_add(text, " on %d core%s", sum.cores, plural(sum.cores));
    if (!alike) {
        add_rows(places, text);
    }
}

/* ---- warnings ---- */

/* "each rank", or the first of those it is about. */
static void add_who(cvy_text *text, const cvy_places *places, int first, int count)
{
    char host[CVY_WORD_TEXT];
    if (count == places->ranks) {
        cvy_text_add(text, "%s rank", count > 1 ? "each" : "the only");
        return;
    }
    cvy_text_add(text, "rank %d on %s", first, cvy_print_word(places->place[first].host, host));
    if (count > 1) {
        cvy_text_add(text, ", like %d other%s,", count - 1, plural(count - 1));
    }
}

/* How a rank gets so many cores. */
static void add_advice(cvy_text *text, cvy_launcher launcher, int cores)
{
    switch (launcher) {
    case CVY_LAUNCHER_OPEN_MPI:
        cvy_text_add(text, "mpiexec --bind-to none, or --map-by slot:PE=%d, gives it more", cores);
        break;
    case CVY_LAUNCHER_MPICH:
        cvy_text_add(text, "mpiexec -bind-to none, or -bind-to core:%d, gives it more", cores);
        break;
    case CVY_LAUNCHER_SLURM:
        cvy_text_add(text, "srun --cpu-bind=none, or --cpus-per-task=%d, gives it more", cores);
        break;
    case CVY_LAUNCHER_OTHER:
        cvy_text_add(text, "it could have %d", cores);
        break;
    }
}

/* Cores of its node for each rank there. */
static int count_fair_cores(const cvy_places *places, int rank)
{
    node_row row = sum_node(places, places->place[rank].node);
    return places->place[rank].cores_machine / row.ranks;
}

static bool is_bound_below_asked(const cvy_places *places, int rank)
{
    const cvy_place *p = &places->place[rank];
    int cores = CPU_COUNT(&p->cores);
    return cores < p->asked && cores < p->cores_machine;
}

/* One core, where the node has idle ones, enough to give each rank another. */
static bool is_bound_to_one(const cvy_places *places, int rank)
{
    const cvy_place *p = &places->place[rank];
    return p->asked == 0 && CPU_COUNT(&p->cores) == 1 && sum_node(places, p->node).cores < p->cores_machine &&
           count_fair_cores(places, rank) > 1;
}

/* Threads of a rank's whole group, where that is the first of its group. */
static int count_group_threads(const cvy_places *places, int rank)
{
    int threads = 0;
    for (int i = rank; i < places->ranks; i++) {
        threads += places->place[i].group == rank ? places->place[i].threads : 0;
    }
    return threads;
}

static bool is_oversubscribed(const cvy_places *places, int rank)
{
    return places->place[rank].group == rank && !is_bound_below_asked(places, rank) &&
           count_group_threads(places, rank) > places->place[rank].group_cores;
}

/* How many ranks something is true of, and the first of them. */
static int find_ranks(const cvy_places *places, bool (*is_so)(const cvy_places *places, int rank), int *first_out)
{
    int count = 0;
    for (int i = places->ranks - 1; i >= 0; i--) {
        if (is_so(places, i)) {
            *first_out = i;
            count++;
        }
    }
    return count;
}

static void add_bound_below_asked(cvy_text *text, const cvy_places *places, cvy_launcher launcher)
{
    int first, count = find_ranks(places, is_bound_below_asked, &first);
    if (count == 0) {
        return;
    }
    const cvy_place *p = &places->place[first];
    int cores = CPU_COUNT(&p->cores), fair = count_fair_cores(places, first);
    add_who(text, places, first, count);
    cvy_text_add(text, " is bound to %d core%s of %d, fewer than its %d threads: ", cores, plural(cores),
                 p->cores_machine, p->asked);
    if (fair > cores) {
        add_advice(text, launcher, fair < p->asked ? fair : p->asked);
    } else {
        cvy_text_add(text, "--threads %d fits", cores > 1 ? cores : 1);
    }
}

static void add_bound_to_one(cvy_text *text, const cvy_places *places, cvy_launcher launcher)
{
    int first, count = find_ranks(places, is_bound_to_one, &first);
    if (count > 0) {
        add_who(text, places, first, count);
        cvy_text_add(text, " is bound to 1 core of %d: ", places->place[first].cores_machine);
        add_advice(text, launcher, count_fair_cores(places, first));
    }
}

static void add_oversubscribed(cvy_text *text, const cvy_places *places, cvy_launcher launcher)
{
    (void)launcher; /* none of them helps */
    char host[CVY_WORD_TEXT];
    int first, count = find_ranks(places, is_oversubscribed, &first);
    if (count == 0) {
        return;
    }
    const cvy_place *p = &places->place[first];
    cvy_text_add(text, "%d threads of %d rank%s on %d core%s of %s%s: oversubscribed, %s will wait for each other; ",
                 count_group_threads(places, first), p->sharers, plural(p->sharers), p->group_cores,
                 plural(p->group_cores), cvy_print_word(p->host, host), count > 1 ? ", and likewise elsewhere" : "",
                 p->sharers > 1 ? "ranks" : "they");
    if (p->group_cores >= p->sharers) {
        cvy_text_add(text, "--threads %d fits", p->group_cores / p->sharers);
    } else {
        cvy_text_add(text, "%d rank%s fit%s", p->group_cores, plural(p->group_cores), p->group_cores == 1 ? "s" : "");
    }
}

cvy_status cvy_places_warn(cvy_places *places, cvy_launcher launcher)
{
    static void (*const add[CVY_PLACES_WARNINGS])(cvy_text *text, const cvy_places *places, cvy_launcher launcher) = {
        add_bound_below_asked, add_bound_to_one, add_oversubscribed};
    for (int i = 0; i < CVY_PLACES_WARNINGS; i++) {
        cvy_text text = {0};
        add[i](&text, places, launcher);
        char *line = cvy_text_take(&text);
        if (!line) {
            return CVY_ERR_MEMORY;
        }
        if (*line) {
            places->warning[places->warnings++] = line;
        } else {
            cvy_free(line);
        }
    }
    return CVY_OK;
}
