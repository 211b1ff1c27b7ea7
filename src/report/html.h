/* Text of any origin in HTML and SVG: shown as it is, never read as markup. */
#ifndef CVY_REPORT_HTML_H
#define CVY_REPORT_HTML_H

#include "base/text.h"

/**
 * Append words as text of an element or of an attribute in quotes. What is no UTF-8, and control characters, become
 * U+FFFD; NULL is nothing.
 */
void cvy_html_add(cvy_text *html, const char *words);

#endif
