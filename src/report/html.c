/* The five characters that HTML gives a meaning in text and in attributes have names of their own. */
#include "report/html.h"

#include <string.h>

#include "base/utf8.h"

static const char *find_name(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

void cvy_html_add(cvy_text *html, const char *words)
{
    while (words && *words) {
        const char *name = find_name(*words);
        int bytes = cvy_utf8_measure(words);
        if (name) {
            cvy_text_add(html, "%s", name);
        } else if (bytes > 0) {
            cvy_text_add(html, "%.*s", bytes, words);
        } else {
            cvy_text_add(html, "%s", *words == '\n' || *words == '\t' ? " " : "\xef\xbf\xbd");
        }
        words += bytes > 0 ? bytes : 1;
    }
}
