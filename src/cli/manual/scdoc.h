/* Text in scdoc's language; see scdoc(5). */
#ifndef CVY_CLI_MANUAL_SCDOC_H
#define CVY_CLI_MANUAL_SCDOC_H

#include "base/text.h"

/** Append a text that is to be read as it is: what scdoc would take for a mark is escaped. */
void scdoc_add_plain(cvy_text *text, const char *words);

/** Append a sentence: as scdoc_add_plain(), with a capital, a stop at the end, and names of options in bold. */
void scdoc_add_sentence(cvy_text *text, const char *words);

/** Append a form of a command's line: words in bold, capitals for what is to be put in their place underlined. */
void scdoc_add_form(cvy_text *text, const char *form, size_t length);

/** Append "*a*, *b* or *c*". */
void scdoc_add_choices(cvy_text *text, const char *const *choices);

/** Append " from 1 to 64", " of at least 1", or nothing where the bounds of a number say little. */
void scdoc_add_range(cvy_text *text, double minimum, double maximum);

#endif
