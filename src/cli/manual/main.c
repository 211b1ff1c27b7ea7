/*
 * convoy-manual, a tool of the build: prints the program's manual pages and the tables of its completion, out of the
 * program's own tables. It is not installed; see make_pages.sh.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/manual/pages.h"
#include "cli/terminal.h"

static cvy_status print_text(cvy_text *text)
{
    char *taken = cvy_text_take(text);
    if (!taken) {
        return CVY_ERR_MEMORY;
    }
    fputs(taken, stdout);
    cvy_free(taken);
    return CVY_OK;
}

/* "convoy-train.1", a page a line. */
static cvy_status print_list(void)
{
    manual_page page;
    for (int i = 0; manual_page_get(i, &page); i++) {
        printf("%s.%d\n", page.name, page.volume);
    }
    return CVY_OK;
}

static cvy_status print_page(const char *file, const char *folder)
{
    manual_page page;
    char name[MANUAL_NAME_TEXT + 8];
    cvy_text text = {0};
    for (int i = 0; manual_page_get(i, &page); i++) {
        snprintf(name, sizeof name, "%s.%d", page.name, page.volume);
        if (strcmp(name, file) == 0) {
            cvy_status status = manual_page_write(&page, folder, &text);
            if (status == CVY_OK) {
                return print_text(&text);
            }
            cvy_text_destroy(&text);
            return status;
        }
    }
    return cvy_fail(CVY_ERR_INPUT, "no page '%.60s'; see convoy-manual list", file);
}

static cvy_status print_completion(void)
{
    cvy_text text = {0};
    manual_add_completion(&text);
    return print_text(&text);
}

static cvy_status run(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        return print_list();
    }
    if (argc == 2 && strcmp(argv[1], "completion") == 0) {
        return print_completion();
    }
    if (argc == 4 && strcmp(argv[1], "page") == 0) {
        return print_page(argv[2], argv[3]);
    }
    return cvy_fail(CVY_ERR_INPUT, "usage: convoy-manual list | completion | page PAGE FOLDER");
}

int main(int argc, char **argv)
{
    cvy_status status = run(argc, argv);
    if (status == CVY_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        status = cvy_fail(CVY_ERR_IO, "standard output: the page could not be written");
    }
    if (status != CVY_OK) {
        cli_print_error(cvy_error_message());
    }
    return cvy_status_exit_code(status);
}
