/* What the files of the watch share: links, messages, and the seam between the watch and a communicator. */
#ifndef CVY_COMM_WATCH_INTERNAL_H
#define CVY_COMM_WATCH_INTERNAL_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "comm/watch.h"
#include "comm/watch_report.h"

/* ---- messages: of one size; nodes of one run have one byte order, which the magic number holds ---- */

typedef enum cvy_watch_word {
    CVY_WATCH_HELLO = 1, /**< from whom to whom: the first each way */
    CVY_WATCH_BEAT,      /**< `own`, and up the tree `report` of all below */
    CVY_WATCH_LOST,      /**< up: `rank` is to blame, `status`, `text`; to the one at the top, which decides */
    CVY_WATCH_STOP,      /**< everywhere: the run ends */
    CVY_WATCH_DONE,      /**< up: all of this part of the tree have left */
    CVY_WATCH_BYE,       /**< down: all have left */
    CVY_WATCH_WORDS
} cvy_watch_word;

typedef struct cvy_watch_message {
    uint64_t token; /**< of the run; from rank 0 */
    uint32_t magic;
    int32_t word;
    int32_t from, to;
    int32_t rank;
    int32_t status; /**< of an end */
    cvy_watch_standing own;
    cvy_watch_report report;
    char text[CVY_WATCH_TEXT];
} cvy_watch_message;

/* ---- links ---- */

typedef struct cvy_watch_link {
    int descriptor; /**< -1: none */
    int peer;       /**< rank; -1: not known yet */
    bool done;      /**< it has said CVY_WATCH_DONE */
    double heard_s; /**< by the watch's clock; of a stranger the time by which it must have said who it is */
    cvy_watch_standing own;  /**< the last that it said */
    cvy_watch_report report;
    size_t in_bytes, out_bytes; /**< of a message that came, or went, in part */
    unsigned char in[sizeof(cvy_watch_message)];
    unsigned char out[2 * sizeof(cvy_watch_message)];
} cvy_watch_link;

/** Make it empty, without closing anything. */
void cvy_watch_link_clear(cvy_watch_link *link);
void cvy_watch_link_close(cvy_watch_link *link);

/** Queue a message and send what goes at once; false where there is no room, as where the other side does not read. */
bool cvy_watch_link_send(cvy_watch_link *link, const cvy_watch_message *message);

/** Send what is queued; as much as goes at once. */
void cvy_watch_link_flush(cvy_watch_link *link);

typedef enum cvy_watch_got {
    CVY_WATCH_GOT_NOTHING,
    CVY_WATCH_GOT_MESSAGE,
    CVY_WATCH_GOT_END /**< the other side is gone */
} cvy_watch_got;

/** Take the next whole message, if there is one; what is said before an end comes before it. */
cvy_watch_got cvy_watch_link_receive(cvy_watch_link *link, cvy_watch_message *message_out);

/* ---- addresses ---- */

enum { CVY_WATCH_ADDRESSES = 8 };

/** Where a rank listens. */
typedef struct cvy_watch_record {
    uint64_t token; /**< rank 0's counts */
    uint64_t host;  /**< a hash of boot and network namespace: ranks of the same reach each other by the loopback */
    uint16_t port;  /**< 0: it does not listen */
    uint16_t addresses;
    unsigned char address[CVY_WATCH_ADDRESSES][16]; /**< IPv6; of IPv4 the mapped form */
} cvy_watch_record;

/** Listen at a free port. @return a descriptor; -1: impossible, and the record says so */
int cvy_watch_listen(cvy_watch_record *record_out);

/** A socket that begins to connect to the i-th address where a rank may be reached; -1: there is none, or it failed. */
int cvy_watch_connect(const cvy_watch_record *to, bool same_host, int i);

/** How many addresses there are to try. */
int cvy_watch_choices(const cvy_watch_record *to, bool same_host);

/* ---- the watch ---- */

/** The ranks that are watched: what the watch needs of a communicator, for which tests put pipes. */
typedef struct cvy_watch_ranks {
    int rank, ranks;
    void *context;
    /** Collect as many bytes of each rank; collective, as cvy_comm_gather_bytes(). */
    cvy_status (*gather)(void *context, const void *mine, int64_t bytes, void *all_out);
    /** As cvy_comm_agree(). */
    cvy_status (*agree)(void *context, cvy_status mine);
    /** As cvy_comm_abandon(). */
    void (*abandon)(void *context, int exit_code);
} cvy_watch_ranks;

typedef enum cvy_watch_phase {
    CVY_WATCH_WATCHING,
    CVY_WATCH_TOLD,    /**< a finding went up; the top is to decide */
    CVY_WATCH_CUT_OFF, /**< the rank above was lost; somebody else finds that, and speaks */
    CVY_WATCH_STOPPED, /**< the run was ended */
    CVY_WATCH_LEFT     /**< all have left in good order */
} cvy_watch_phase;

/** How the ranks of a communicator come together. */
typedef struct cvy_watch_meeting {
    cvy_comm *comm;
    double timeout_s;
    int32_t said[]; /**< by each rank: how it went */
} cvy_watch_meeting;

struct cvy_watch {
    cvy_watch_options options;
    cvy_watch_ranks ranks;
    cvy_watch_meeting *meeting; /**< the context of `ranks`; NULL: that is not the watch's */
    uint64_t token;
    int above;      /**< rank of the one above; -1: this is the top of a tree */
    int first, end; /**< ranks of those below: from first to before end */
    int heir;       /**< the rank that speaks where rank 0 is lost */
    cvy_watch_link *link; /**< [0]: above, and so on: below */
    int links;
    struct pollfd *wait; /**< links + 1 */
    int wake; /**< an event descriptor that wakes the thread */
    pthread_t thread;
    pthread_mutex_t gate; /**< held by cvy_watch_start() until all ranks have agreed that the thread is to run */
    bool running;
    atomic_bool leaving;
    atomic_int failed; /**< what this rank says of itself, a cvy_status, in `words` */
    char words[CVY_WATCH_TEXT];

    /* the thread's own */
    double clock_s;       /**< seconds in which the watch ran */
    double interval_s;    /**< between beats */
    double next_beat_s;
    double decide_s;      /**< by when phases TOLD and CUT_OFF end */
    double awake_s;       /**< until then it has only just gone on, after it was stopped for the time-out */
    double moved_s;       /**< when this rank's pulse last moved */
    cvy_watch_standing own;
    cvy_watch_phase phase;
    bool said_done;
    int blamed;
    cvy_status status;
    char text[CVY_WATCH_TEXT]; /**< what was found first */
};

/** As cvy_watch_start(), over whatever joins the ranks. @param[in] ranks copied */
cvy_status cvy_watch_start_ranks(const cvy_watch_ranks *ranks, const cvy_watch_options *options,
                                 cvy_watch **watch_out);

/** Make the links, within seconds; those that cannot be made stay empty. @param[in] records of all ranks */
void cvy_watch_meet(cvy_watch *watch, int listener, const cvy_watch_record *records);

/** A message of this rank. */
cvy_watch_message cvy_watch_say(const cvy_watch *watch, cvy_watch_word word, int to);

/** The thread: watch until the run ends, in good order or not. @param[in] watch a cvy_watch */
void *cvy_watch_run(void *watch);

/** What the thread does about what it finds and hears of an end (watch_end.c). */
void cvy_watch_find(cvy_watch *watch, int rank, cvy_status status, const char *text);
void cvy_watch_lose(cvy_watch *watch, cvy_watch_link *link, const char *cause);
void cvy_watch_end_run(cvy_watch *watch, bool speaks, const cvy_watch_link *from);
void cvy_watch_leave(cvy_watch *watch);
void cvy_watch_decide(cvy_watch *watch);

#endif
