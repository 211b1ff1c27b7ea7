/*
 * Ranks that send each other pieces of a buffer, message by message, with the numbers in it: what closed forms of
 * collectives are judged by. The messages of a step start together; a rank sends and receives at once, and is done with
 * the step when its last message is.
 */
#ifndef CVY_TESTS_ORACLE_WORLD_H
#define CVY_TESTS_ORACLE_WORLD_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { WORLD_RANKS = 40, WORLD_PIECES = 64 };

typedef struct world {
    int ranks, pieces;
    double piece_bytes;
    double latency_s, s_per_byte, sum_s_per_byte;
    int node[WORLD_RANKS];                     /* where each rank is; ... */
    double outer_latency_s, outer_s_per_byte;  /* ... between nodes these hold */
    double clock_s[WORLD_RANKS], next_s[WORLD_RANKS];
    double piece[WORLD_RANKS][WORLD_PIECES], next[WORLD_RANKS][WORLD_PIECES];
} world;

/* Rank r begins with 100 (r + 1) + i in piece i. */
static inline void begin_world(world *w)
{
    for (int r = 0; r < w->ranks; r++) {
        w->clock_s[r] = w->next_s[r] = 0.0;
        for (int i = 0; i < w->pieces; i++) {
            w->piece[r][i] = w->next[r][i] = 100.0 * (r + 1) + i;
        }
    }
}

/* In the step that is being made: pieces first to first + count - 1, to be added or put in place. */
static inline void send_pieces(world *w, int from, int to, int first, int count, bool sum)
{
    bool inside = w->node[from] == w->node[to];
    double s_per_byte = (inside ? w->s_per_byte : w->outer_s_per_byte) + (sum ? w->sum_s_per_byte : 0.0);
    double seconds = (inside ? w->latency_s : w->outer_latency_s) + count * w->piece_bytes * s_per_byte;
    double end_s = fmax(w->clock_s[from], w->clock_s[to]) + seconds;
    w->next_s[from] = fmax(w->next_s[from], end_s);
    w->next_s[to] = fmax(w->next_s[to], end_s);
    for (int i = first; i < first + count; i++) {
        w->next[to][i] = (sum ? w->piece[to][i] : 0.0) + w->piece[from][i];
    }
}

static inline void end_step(world *w)
{
    memcpy(w->clock_s, w->next_s, sizeof w->clock_s);
    memcpy(w->piece, w->next, sizeof w->piece);
}

static inline double end_world(const world *w)
{
    double last_s = 0.0;
    for (int r = 0; r < w->ranks; r++) {
        last_s = fmax(last_s, w->clock_s[r]);
    }
    return last_s;
}

/* Whether each rank has the sum over all of each piece. */
static inline bool all_have_sums(const world *w)
{
    for (int r = 0; r < w->ranks; r++) {
        for (int i = 0; i < w->pieces; i++) {
            if (w->piece[r][i] != 100.0 * w->ranks * (w->ranks + 1) / 2 + (double)w->ranks * i) {
                return false;
            }
        }
    }
    return true;
}

static inline int wrap(int rank, int ranks) { return ((rank % ranks) + ranks) % ranks; }

/* As many pieces as ranks: p - 1 steps of sums, p - 1 of copies. */
static inline void run_ring(world *w)
{
    for (int step = 0; step < 2 * (w->ranks - 1); step++) {
        bool sum = step < w->ranks - 1;
        for (int r = 0; r < w->ranks; r++) {
            int piece = sum ? wrap(r - step, w->ranks) : wrap(r + 1 - (step - w->ranks + 1), w->ranks);
            send_pieces(w, r, wrap(r + 1, w->ranks), piece, 1, sum);
        }
        end_step(w);
    }
}

static inline int power_within(int ranks)
{
    int power = 1;
    while (2 * power <= ranks) {
        power *= 2;
    }
    return power;
}

/* Rank of the i-th that stays: of the first 2 (p - q) every other one stands aside. member lists ranks, or is NULL. */
static inline int stayer(const int *member, int ranks, int i)
{
    int aside = ranks - power_within(ranks), place = i < aside ? 2 * i : i + aside;
    return member ? member[place] : place;
}

/* Those aside send all they have to the rank before, or are sent all of the result. */
static inline void fold(world *w, const int *member, int ranks, bool in)
{
    int aside = ranks - power_within(ranks);
    for (int i = 0; i < aside; i++) {
        int near = stayer(member, ranks, i), far = member ? member[2 * i + 1] : 2 * i + 1;
        send_pieces(w, in ? far : near, in ? near : far, 0, w->pieces, in);
    }
    end_step(w);
}

static inline void run_doubling(world *w, const int *member, int ranks)
{
    int power = power_within(ranks);
    fold(w, member, ranks, true);
    for (int distance = 1; distance < power; distance *= 2) {
        for (int i = 0; i < power; i++) {
            send_pieces(w, stayer(member, ranks, i), stayer(member, ranks, i ^ distance), 0, w->pieces, true);
        }
        end_step(w);
    }
    fold(w, member, ranks, false);
}

/* Pieces are a multiple of q: each rank keeps the half that its bit says, then gives it back. */
static inline void run_halving(world *w)
{
    int power = power_within(w->ranks), size = w->pieces;
    fold(w, NULL, w->ranks, true);
    for (int distance = power / 2; distance >= 1; distance /= 2, size /= 2) {
        for (int i = 0; i < power; i++) {
            int far = i ^ distance, begin = i / (2 * distance) * size + (far & distance ? size / 2 : 0);
            send_pieces(w, stayer(NULL, w->ranks, i), stayer(NULL, w->ranks, far), begin, size / 2, true);
        }
        end_step(w);
    }
    for (int distance = 1; distance < power; distance *= 2, size *= 2) {
        for (int i = 0; i < power; i++) {
            send_pieces(w, stayer(NULL, w->ranks, i), stayer(NULL, w->ranks, i ^ distance), i / distance * size, size,
                        false);
        }
        end_step(w);
    }
    fold(w, NULL, w->ranks, false);
}

/* From rank @p first to the ones behind it, or their sum to it. */
static inline void run_binomial(world *w, int first, int ranks, bool sum)
{
    int top = 1;
    while (top < ranks) {
        top *= 2;
    }
    for (int step = sum ? 1 : top / 2; sum ? step < top : step >= 1; step = sum ? step * 2 : step / 2) {
        for (int i = 0; i + step < ranks; i += 2 * step) {
            send_pieces(w, first + (sum ? i + step : i), first + (sum ? i : i + step), 0, w->pieces, sum);
        }
        end_step(w);
    }
}

#endif
