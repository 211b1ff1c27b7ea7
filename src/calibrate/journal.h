/*
 * The journal of a calibration: a line for each kernel that was measured, appended at once, so that a calibration that
 * was killed at any moment goes on where it was. What is cut off behind the last whole line is thrown away.
 */
#ifndef CVY_CALIBRATE_JOURNAL_H
#define CVY_CALIBRATE_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "calibrate/meter.h"

/** A journal that is open. */
typedef struct cvy_journal cvy_journal;

/**
 * Open a journal; one of another question is begun anew. Not collective.
 *
 * @param[in]  path         NULL: it is kept in memory alone
 * @param[in]  question     a hash of all that what is measured depends on: machine, threads, library
 * @param[out] journal_out  released with cvy_journal_close()
 * @retval CVY_ERR_INPUT    there is a file of that name that is no journal
 * @retval CVY_ERR_IO       the file cannot be written
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_journal_open(const char *path, uint64_t question, cvy_journal **journal_out);

/** Close and release; NULL is fine. The file stays. */
void cvy_journal_close(cvy_journal **journal);

/** How many kernels it has, and the seconds that measuring had taken by the last of them. Cannot fail. */
int cvy_journal_rows(const cvy_journal *journal);
double cvy_journal_spent_s(const cvy_journal *journal);

/** What was measured of an op at a distance; NULL if nothing. */
const cvy_metered *cvy_journal_find(const cvy_journal *journal, const cvy_op *op, double distance_bytes);

/**
 * Append a kernel.
 *
 * @param[in] spent_s  seconds that measuring has taken so far, in all sessions
 * @retval CVY_ERR_IO, CVY_ERR_MEMORY
 */
cvy_status cvy_journal_add(cvy_journal *journal, const cvy_op *op, const cvy_metered *metered, double spent_s);

#endif
