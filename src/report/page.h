/*
 * One HTML page: a heading, sections, facts, tables, charts with their figures in a table below. It holds all that it
 * shows: no script, nothing from elsewhere. Words of any origin are shown as they are.
 *
 * A page is built from the top down. Running out of memory is kept, and told by cvy_page_save().
 */
#ifndef CVY_REPORT_PAGE_H
#define CVY_REPORT_PAGE_H

#include "report/chart.h"

typedef struct cvy_page {
    cvy_text head, contents, body; /**< contents: links to the sections */
    int charts;                    /**< drawn so far: names of ids */
    bool in_section, in_folded, may_draw;
    int columns, column;           /**< of the table that is open */
    const struct cvy_page_column *table;
} cvy_page;

typedef struct cvy_page_column {
    const char *name;
    bool number; /**< stands to the right */
    bool words;  /**< sentences, which may take several lines */
} cvy_page_column;

/** Begin a page. @param[out] page_out  cvy_page_save() or cvy_page_clear() releases what it owns */
void cvy_page_begin(const char *title, const char *subtitle, cvy_page *page_out);

/** Begin a section, which ends the one before. @param[in] id letters and '-', once a page */
void cvy_page_section(cvy_page *page, const char *id, const char *heading);

/** A paragraph, printf style. */
void cvy_page_say(cvy_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Figures with their names, side by side. Between begin and end, cvy_page_fact() alone. */
void cvy_page_begin_facts(cvy_page *page);
void cvy_page_fact(cvy_page *page, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
void cvy_page_end_facts(cvy_page *page);

/**
 * Begin a table. Cells follow, row by row; then cvy_page_end_table().
 *
 * @param[in] column  borrowed until the end of the table
 * @param[in] folded  words that are clicked upon for the table to be seen; NULL: it is open
 */
void cvy_page_begin_table(cvy_page *page, const cvy_page_column *column, int columns, const char *folded);
void cvy_page_cell(cvy_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cvy_page_end_table(cvy_page *page);

/**
 * A chart, for wide pages and for narrow ones; without gnuplot nothing, which the page says once.
 *
 * @param[in] chart    its title is a caption above
 * @param[in] caption  how to read it, below; NULL: nothing to say
 * @retval CVY_ERR_IO, CVY_ERR_ARG, CVY_ERR_MEMORY as cvy_chart_draw() says
 */
cvy_status cvy_page_draw(cvy_page *page, const cvy_chart *chart, const char *caption);

/** Write the page and release it, on failure too. @retval CVY_ERR_IO, CVY_ERR_MEMORY */
cvy_status cvy_page_save(cvy_page *page, const char *path);

/** Release what a page owns and empty it. */
void cvy_page_clear(cvy_page *page);

/** The style sheet of pages. */
extern const char cvy_page_style[];

#endif
