/* How people write the ten digits: strokes as control points, a few ways a digit. */
#ifndef CVY_DATA_GLYPHS_H
#define CVY_DATA_GLYPHS_H

#include <stdint.h>

enum { CVY_GLYPH_WAYS = 3, CVY_GLYPH_STROKES = 3, CVY_GLYPH_POINTS = 11 };

/** One movement of the pen. */
typedef struct cvy_stroke {
    int points;                             /**< 2 to CVY_GLYPH_POINTS; 0: no such stroke */
    int smooth;                             /**< a curve through the points; else straight lines between them */
    uint8_t at[CVY_GLYPH_POINTS][2];        /**< x to the right, y down, 0 to 100; glyphs fill about 20-80 by 10-90 */
} cvy_stroke;

/** One way to write a digit. */
typedef struct cvy_glyph {
    cvy_stroke stroke[CVY_GLYPH_STROKES];
} cvy_glyph;

extern const cvy_glyph cvy_glyphs[10][CVY_GLYPH_WAYS];

#endif
