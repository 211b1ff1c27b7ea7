/*
 * Every rank tells all others its host and its cores and then works out the same table, so that nothing has to be sent
 * back. Nodes are told apart by who shares memory, not by host names, which containers repeat. Cores are compared, not
 * hardware threads: two ranks on two hardware threads of one core share it.
 */
#include "runtime/places.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/topology.h"

static int smaller(int a, int b) { return a < b ? a : b; }
static int larger(int a, int b) { return a > b ? a : b; }

static bool overlap(const cpu_set_t *a, const cpu_set_t *b)
{
    cpu_set_t both;
    CPU_AND(&both, a, b);
    return CPU_COUNT(&both) > 0;
}

/* Let all ranks that are connected with the first one join its group; answers its cores. They have group -1 before. */
static cpu_set_t gather_group(cvy_place *place, int ranks, int first)
{
    cpu_set_t cores = place[first].cores;
    place[first].group = first;
    for (bool grown = true; grown;) {
        grown = false;
        for (int i = first + 1; i < ranks; i++) {
            cvy_place *p = &place[i];
            if (p->group < 0 && p->node == place[first].node && overlap(&p->cores, &cores)) {
                CPU_OR(&cores, &cores, &p->cores);
                p->group = first;
                grown = true;
            }
        }
    }
    return cores;
}

static void share_group(cvy_place *place, int ranks, int first)
{
    cpu_set_t together = gather_group(place, ranks, first);
    int cores = CPU_COUNT(&together), sharers = 0;
    for (int i = first; i < ranks; i++) {
        if (place[i].group == first) {
            place[i].share = sharers++;
        }
    }
    for (int i = first; i < ranks; i++) {
        cvy_place *p = &place[i];
        if (p->group == first) {
            int fair = larger(smaller(cores / sharers, CPU_COUNT(&p->cores)), 1);
            p->sharers = sharers;
            p->group_cores = cores;
            p->threads = p->asked > 0 ? p->asked : fair;
        }
    }
}

void cvy_places_share(cvy_place *place, int ranks)
{
    for (int i = 0; i < ranks; i++) {
        place[i].group = -1;
    }
    for (int i = 0; i < ranks; i++) {
        if (place[i].group < 0) {
            share_group(place, ranks, i);
        }
    }
}

void cvy_places_find_own(const cvy_places *places, int rank, cpu_set_t *own_out)
{
    const cvy_place *mine = &places->place[rank];
    bool alike = true;
    for (int i = 0; i < places->ranks; i++) {
        const cvy_place *p = &places->place[i];
        alike = alike && (p->group != mine->group || CPU_EQUAL(&p->cores, &mine->cores));
    }
    int each = mine->group_cores / mine->sharers;
    CPU_ZERO(own_out);
    if (mine->sharers == 1) {
        *own_out = mine->cores;
    } else if (alike && each > 0) {
        cvy_topology_slice(&mine->cores, mine->share * each, each, own_out);
    }
}

cvy_launcher cvy_launcher_find(void)
{
    /* Slurm's variables are seen under mpiexec in its jobs too, so mpiexec's come first; its own PMI is also MPICH's */
    static const struct {
        const char *variable;
        cvy_launcher launcher;
    } signs[] = {{"OMPI_COMM_WORLD_SIZE", CVY_LAUNCHER_OPEN_MPI},
                 {"HYDI_CONTROL_FD", CVY_LAUNCHER_MPICH},
                 {"MPI_LOCALNRANKS", CVY_LAUNCHER_MPICH},
                 {"SLURM_STEP_ID", CVY_LAUNCHER_SLURM},
                 {"PMI_SIZE", CVY_LAUNCHER_MPICH}};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (getenv(signs[i].variable)) {
            return signs[i].launcher;
        }
    }
    return CVY_LAUNCHER_OTHER;
}

static void find_place(int asked, cvy_place *place_out)
{
    cvy_topology topology;
    cvy_topology_get(&topology);
    memset(place_out, 0, sizeof *place_out); /* bytes between the members are sent as well */
    place_out->cores = topology.bound;
    place_out->cores_machine = topology.cores_machine;
    place_out->asked = asked;
    if (gethostname(place_out->host, sizeof place_out->host - 1) != 0) {
        strcpy(place_out->host, "unknown");
    }
}

/* All ranks of a node give it the number in the run of one of them. */
static cvy_status find_node(cvy_comm *comm, int *node_out)
{
    cvy_comm *group = NULL;
    CVY_TRY(cvy_comm_split_node(comm, &group));
    int node = cvy_comm_rank(comm);
    cvy_status status = cvy_comm_broadcast(group, &node, sizeof node, 0);
    cvy_comm_close(&group);
    *node_out = node;
    return status;
}

static cvy_status check_place(const cvy_places *places, int rank)
{
    const cvy_place *p = &places->place[rank];
    bool fits = p->node >= 0 && p->node < places->ranks && p->asked >= 0 && p->cores_machine >= 1 &&
                p->host[CVY_HOST_BYTES - 1] == '\0';
    CVY_REQUIRE(fits, CVY_ERR_RANK, "rank %d tells of node %d, %d threads and %d cores: expected a node of 0 to %d; do "
                "all ranks run the same build?", rank, p->node, p->asked, p->cores_machine, places->ranks - 1);
    return CVY_OK;
}

static int count_nodes(const cvy_places *places)
{
    int nodes = 0;
    for (int i = 0; i < places->ranks; i++) {
        int first = 0;
        while (places->place[first].node != places->place[i].node) {
            first++;
        }
        nodes += first == i;
    }
    return nodes;
}

static cvy_status fill(cvy_places *places)
{
    for (int i = 0; i < places->ranks; i++) {
        CVY_TRY(check_place(places, i));
    }
    places->nodes = count_nodes(places);
    cvy_places_share(places->place, places->ranks);
    cvy_places_find_own(places, places->rank, &places->own);
    return cvy_places_warn(places, cvy_launcher_find());
}

cvy_status cvy_places_find(cvy_comm *comm, int asked_threads, cvy_places *places_out)
{
    cvy_place mine;
    cvy_places places = {.ranks = cvy_comm_ranks(comm), .rank = cvy_comm_rank(comm)};
    cvy_status status;
    *places_out = (cvy_places){0};
    find_place(asked_threads, &mine);
    places.place = cvy_calloc((size_t)places.ranks, sizeof *places.place);
    CVY_TRY_GOTO(status, done, cvy_comm_agree(comm, places.place ? CVY_OK : CVY_ERR_MEMORY));
    CVY_TRY_GOTO(status, done, find_node(comm, &mine.node));
    CVY_TRY_GOTO(status, done, cvy_comm_gather_bytes(comm, &mine, sizeof mine, places.place));
    CVY_TRY_GOTO(status, done, cvy_comm_agree(comm, fill(&places)));
    *places_out = places;
    places = (cvy_places){0};
done:
    cvy_places_clear(&places);
    return status;
}

void cvy_places_clear(cvy_places *places)
{
    for (int i = 0; i < places->warnings; i++) {
        cvy_free(places->warning[i]);
    }
    cvy_free(places->place);
    *places = (cvy_places){0};
}
