/* Pages: words of any origin are shown, elements are whole, and what is drawn has its figures beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "report/html.h"
#include "report/page.h"

static const char hostile[] = "<script>alert('1')</script> & \"quoted\" \xff\x01";
static const char shown[] =
    "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;quoted&quot; \xef\xbf\xbd\xef\xbf\xbd";

static int count(const char *text, const char *words)
{
    int found = 0;
    for (const char *at = strstr(text, words); at; at = strstr(at + 1, words)) {
        found++;
    }
    return found;
}

static void test_words_become_no_markup(void **state)
{
    (void)state;
    cvy_text text = {0};
    cvy_html_add(&text, hostile);
    assert_string_equal(text.data, shown);
    cvy_text_destroy(&text);
}

/* Save a page, read it back, remove it. */
static char *save(cvy_page *page)
{
    char folder[] = "/tmp/convoy-page-XXXXXX", *data;
    size_t bytes;
    assert_non_null(mkdtemp(folder));
    char *path = cvy_path_join(folder, "page.html");
    assert_non_null(path);
    assert_int_equal(cvy_page_save(page, path), CVY_OK);
    assert_int_equal(cvy_file_read(path, 1 << 24, CVY_ERR_IO, &data, &bytes), CVY_OK);
    assert_int_equal(cvy_folder_remove(folder, CVY_ERR_IO), CVY_OK);
    cvy_free(path);
    return data;
}

/* Hostile words in each place that takes any: seven of them, and the title twice. */
static void test_every_place_shows_words_as_they_are(void **state)
{
    (void)state;
    const cvy_page_column column[] = {{.name = hostile}, {.name = "figure", .number = true}};
    cvy_page page;
    cvy_page_begin(hostile, hostile, &page);
    cvy_page_section(&page, "first", hostile);
    cvy_page_say(&page, "%s", hostile);
    cvy_page_begin_facts(&page);
    cvy_page_fact(&page, hostile, "%s", hostile);
    cvy_page_end_facts(&page);
    cvy_page_begin_table(&page, column, 2, hostile);
    cvy_page_cell(&page, "%s", hostile);
    cvy_page_cell(&page, "%d", 7);
    cvy_page_end_table(&page);
    char *html = save(&page);
    assert_null(strstr(html, "<script"));
    assert_int_equal(count(html, shown), 2 + 1 + 2 + 1 + 2 + 3); /* a heading stands among the contents, too */
    assert_int_equal(count(html, "<tr>"), 2);
    assert_int_equal(count(html, "</tr>"), 2);
    assert_non_null(strstr(html, "<td class=\"number\">7</td></tr>"));
    assert_int_equal(count(html, "<section"), count(html, "</section>"));
    assert_int_equal(count(html, "<details>"), count(html, "</details>"));
    cvy_free(html);
}

/* A chart stands there for wide and for narrow pages; of two series there is a legend of two. */
static void test_a_chart_is_drawn_for_both_widths(void **state)
{
    (void)state;
    static const double y[] = {1.0, 2.0}, x[] = {1.0, 2.0};
    const cvy_chart_series of[] = {{.name = "measured", .y = y}, {.name = "ideal", .y = y, .ideal = true}};
    const cvy_chart chart = {.kind = CVY_CHART_LINES, .title = hostile, .x_title = "x", .y_title = "y", .points = 2,
                             .x = x, .series = 2, .of = of};
    cvy_page page;
    if (!cvy_chart_is_possible()) {
        skip();
    }
    cvy_page_begin("t", "s", &page);
    assert_int_equal(cvy_page_draw(&page, &chart, "how to read it"), CVY_OK);
    char *html = save(&page);
    assert_int_equal(count(html, "class=\"convoy-chart\""), 2);
    assert_int_equal(count(html, "role=\"img\""), 2);
    assert_int_equal(count(html, "<li><svg"), 2);
    assert_null(strstr(html, "<script"));
    assert_non_null(strstr(html, "<figcaption>how to read it</figcaption>"));
    cvy_free(html);
}

/* Without gnuplot nothing is drawn, and the page says why, once. */
static void test_without_gnuplot_the_page_says_so(void **state)
{
    (void)state;
    char path[4096];
    const cvy_chart chart = {.kind = CVY_CHART_LINES, .title = "t"};
    cvy_page page;
    snprintf(path, sizeof path, "%s", getenv("PATH") ? getenv("PATH") : "");
    assert_int_equal(setenv("PATH", "/nowhere", 1), 0);
    cvy_page_begin("t", "s", &page);
    assert_int_equal(cvy_page_draw(&page, &chart, NULL), CVY_OK);
    assert_int_equal(cvy_page_draw(&page, &chart, NULL), CVY_OK);
    assert_int_equal(setenv("PATH", path, 1), 0);
    char *html = save(&page);
    assert_int_equal(count(html, "gnuplot is not installed"), 1);
    assert_int_equal(count(html, "<figure"), 0);
    cvy_free(html);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_become_no_markup),
        cmocka_unit_test(test_every_place_shows_words_as_they_are),
        cmocka_unit_test(test_a_chart_is_drawn_for_both_widths),
        cmocka_unit_test(test_without_gnuplot_the_page_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
