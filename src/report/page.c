/*
 * The frame of a page and its elements. Tables scroll by themselves where they are wider than the page, so that the
 * page never does.
 */
#include "report/page.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"
#include "convoy/version.h"
#include "report/html.h"

enum { WORDS = 1024 };

void cvy_page_begin(const char *title, const char *subtitle, cvy_page *page_out)
{
    cvy_page page = {.may_draw = cvy_chart_is_possible()};
    cvy_text_add(&page.head, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                             "<meta name=\"color-scheme\" content=\"light dark\">\n"
                             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                             "style-src 'unsafe-inline'; img-src data:\">\n"
                             "<meta name=\"generator\" content=\"convoy %s\">\n<link rel=\"icon\" href=\"data:,\">\n"
                             "<title>", CVY_VERSION);
    cvy_html_add(&page.head, title);
    cvy_text_add(&page.head, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<header>\n<h1>", cvy_page_style);
    cvy_html_add(&page.head, title);
    cvy_text_add(&page.head, "</h1>\n<p class=\"subtitle\">");
    cvy_html_add(&page.head, subtitle);
    cvy_text_add(&page.head, "</p>\n");
    if (!page.may_draw) {
        cvy_text_add(&page.head, "<p class=\"note\">Charts are missing: gnuplot is not installed. The tables have "
                                 "their figures.</p>\n");
    }
    cvy_text_add(&page.head, "</header>\n");
    *page_out = page;
}

/* printf's words, as text. */
static void add_words(cvy_text *html, const char *format, va_list arguments)
{
    char words[WORDS];
    vsnprintf(words, sizeof words, format, arguments);
    cvy_html_add(html, words);
}

static void end_section(cvy_page *page)
{
    if (page->in_section) {
        cvy_text_add(&page->body, "</section>\n");
    }
    page->in_section = false;
}

void cvy_page_section(cvy_page *page, const char *id, const char *heading)
{
    end_section(page);
    page->in_section = true;
    cvy_text_add(&page->contents, "<li><a href=\"#%s\">", id);
    cvy_html_add(&page->contents, heading);
    cvy_text_add(&page->contents, "</a></li>\n");
    cvy_text_add(&page->body, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">", id, id);
    cvy_html_add(&page->body, heading);
    cvy_text_add(&page->body, "</h2>\n");
}

void cvy_page_say(cvy_page *page, const char *format, ...)
{
    va_list arguments;
    cvy_text_add(&page->body, "<p>");
    va_start(arguments, format);
    add_words(&page->body, format, arguments);
    va_end(arguments);
    cvy_text_add(&page->body, "</p>\n");
}

/* ---- facts ---- */

void cvy_page_begin_facts(cvy_page *page) { cvy_text_add(&page->body, "<dl class=\"facts\">\n"); }

void cvy_page_fact(cvy_page *page, const char *name, const char *format, ...)
{
    va_list arguments;
    cvy_text_add(&page->body, "<div><dt>");
    cvy_html_add(&page->body, name);
    cvy_text_add(&page->body, "</dt><dd>");
    va_start(arguments, format);
    add_words(&page->body, format, arguments);
    va_end(arguments);
    cvy_text_add(&page->body, "</dd></div>\n");
}

void cvy_page_end_facts(cvy_page *page) { cvy_text_add(&page->body, "</dl>\n"); }

/* ---- tables ---- */

void cvy_page_begin_table(cvy_page *page, const cvy_page_column *column, int columns, const char *folded)
{
    page->table = column;
    page->columns = columns;
    page->column = 0;
    page->in_folded = folded != NULL;
    if (folded) {
        cvy_text_add(&page->body, "<details>\n<summary>");
        cvy_html_add(&page->body, folded);
        cvy_text_add(&page->body, "</summary>\n");
    }
    cvy_text_add(&page->body, "<div class=\"scroll\" tabindex=\"0\">\n<table>\n<thead>\n<tr>");
    for (int i = 0; i < columns; i++) {
        cvy_text_add(&page->body, "<th scope=\"col\"%s>", column[i].number ? " class=\"number\"" : "");
        cvy_html_add(&page->body, column[i].name);
        cvy_text_add(&page->body, "</th>");
    }
    cvy_text_add(&page->body, "</tr>\n</thead>\n<tbody>\n");
}

void cvy_page_cell(cvy_page *page, const char *format, ...)
{
    va_list arguments;
    const bool first = page->column == 0;
    const cvy_page_column *column = &page->table[page->column];
    const char *type = column->number ? " class=\"number\"" : column->words ? " class=\"words\"" : "";
    cvy_text_add(&page->body, first ? "<tr><th scope=\"row\"%s>" : "<td%s>", type);
    va_start(arguments, format);
    add_words(&page->body, format, arguments);
    va_end(arguments);
    cvy_text_add(&page->body, first ? "</th>" : "</td>");
    page->column = (page->column + 1) % page->columns;
    cvy_text_add(&page->body, page->column == 0 ? "</tr>\n" : "");
}

void cvy_page_end_table(cvy_page *page)
{
    cvy_text_add(&page->body, "</tbody>\n</table>\n</div>\n%s", page->in_folded ? "</details>\n" : "");
}

/* ---- charts ---- */

static cvy_status draw_variant(cvy_page *page, const cvy_chart *chart, bool narrow)
{
    enum { WIDE = 880, NARROW = 400, NARROW_HEIGHT = 360 };
    char prefix[16];
    cvy_chart_frame frame = {.width = narrow ? NARROW : WIDE, .in_page = true, .narrow = narrow, .prefix = prefix,
                             .height = narrow && chart->kind != CVY_CHART_SPANS ? NARROW_HEIGHT : 0};
    snprintf(prefix, sizeof prefix, "c%d%s-", page->charts, narrow ? "n" : "w");
    cvy_text_add(&page->body, "<div class=\"%s\">\n", narrow ? "narrow" : "wide");
    CVY_TRY(cvy_chart_draw_in(chart, &frame, &page->body));
    cvy_text_add(&page->body, "</div>\n");
    return CVY_OK;
}

cvy_status cvy_page_draw(cvy_page *page, const cvy_chart *chart, const char *caption)
{
    if (!page->may_draw) {
        return CVY_OK;
    }
    page->charts++;
    cvy_text_add(&page->body, "<figure>\n<h3>");
    cvy_html_add(&page->body, chart->title);
    cvy_text_add(&page->body, "</h3>\n");
    cvy_chart_add_legend(chart, &page->body);
    CVY_TRY(draw_variant(page, chart, false));
    CVY_TRY(draw_variant(page, chart, true));
    if (caption) {
        cvy_text_add(&page->body, "<figcaption>");
        cvy_html_add(&page->body, caption);
        cvy_text_add(&page->body, "</figcaption>\n");
    }
    cvy_text_add(&page->body, "</figure>\n");
    return CVY_OK;
}

/* ---- the end ---- */

cvy_status cvy_page_save(cvy_page *page, const char *path)
{
    cvy_status status = CVY_ERR_MEMORY;
    end_section(page);
    cvy_text_add(&page->head, "<nav aria-label=\"Contents\">\n<ul>\n%s</ul>\n</nav>\n<main>\n%s</main>\n<footer>\n"
                              "<p>Made by convoy %s.</p>\n</footer>\n</body>\n</html>\n",
                 page->contents.data ? page->contents.data : "", page->body.data ? page->body.data : "", CVY_VERSION);
    page->head.failed = page->head.failed || page->contents.failed || page->body.failed;
    size_t bytes = page->head.length;
    char *text = cvy_text_take(&page->head);
    if (text) {
        status = cvy_file_write(path, text, bytes, CVY_ERR_IO);
    }
    cvy_free(text);
    cvy_page_clear(page);
    return status;
}

void cvy_page_clear(cvy_page *page)
{
    cvy_text_destroy(&page->head);
    cvy_text_destroy(&page->contents);
    cvy_text_destroy(&page->body);
    *page = (cvy_page){.charts = 0};
}
