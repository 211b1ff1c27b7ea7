/*
 * Pieces by dynamic programming over the points (Bellman, "On the approximation of curves by line segments using
 * dynamic programming", 1961): the best largest error of the first i points by k pieces is the best over where the last
 * piece begins. A piece is the line of least squared relative errors.
 */
#include "calibrate/network.h"

#include <math.h>

static const double good_enough = 0.10;

/* The line through points, weighed by 1 / seconds. */
static cvy_network_piece fit_line(const cvy_network_point *point, int points)
{
    double w = 0.0, wx = 0.0, wxx = 0.0, wy = 0.0, wxy = 0.0;
    cvy_network_piece piece = {.up_to_bytes = point[points - 1].bytes};
    for (int i = 0; i < points; i++) {
        double weight = 1.0 / (point[i].seconds * point[i].seconds), x = point[i].bytes, y = point[i].seconds;
        w += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wy += weight * y;
        wxy += weight * x * y;
    }
    double spread = w * wxx - wx * wx;
    piece.s_per_byte = points > 1 && spread > 0.0 ? (w * wxy - wx * wy) / spread : 0.0;
    piece.constant_s = (wy - piece.s_per_byte * wx) / w;
    if (piece.s_per_byte < 0.0) {
        piece.s_per_byte = 0.0;
        piece.constant_s = wy / w;
    } else if (piece.constant_s < 0.0) {
        piece.constant_s = 0.0;
        piece.s_per_byte = wxy / wxx;
    }
    for (int i = 0; i < points; i++) {
        double seconds = piece.constant_s + piece.s_per_byte * point[i].bytes;
        piece.residual = fmax(piece.residual, fabs(seconds / point[i].seconds - 1.0));
    }
    return piece;
}

int cvy_network_fit(const cvy_network_point *point, int points, cvy_network_piece *piece_out)
{
    double worst[CVY_NETWORK_PIECES][CVY_NETWORK_POINTS]; /* by so many pieces more than one, up to a point */
    int begin[CVY_NETWORK_PIECES][CVY_NETWORK_POINTS];
    int pieces = 0;
    for (int k = 0; k < CVY_NETWORK_PIECES && (k == 0 || worst[k - 1][points - 1] > good_enough); k++, pieces++) {
        for (int i = 0; i < points; i++) {
            worst[k][i] = k == 0 ? fit_line(point, i + 1).residual : worst[k - 1][i];
            begin[k][i] = k == 0 ? 0 : -1; /* -1: as well by fewer */
            for (int b = 2; k > 0 && b < i; b++) { /* a piece has two points at least */
                double error = fmax(worst[k - 1][b - 1], fit_line(&point[b], i + 1 - b).residual);
                if (error < worst[k][i]) {
                    worst[k][i] = error;
                    begin[k][i] = b;
                }
            }
        }
    }
    int count = 0, end = points;
    for (int k = pieces - 1; k >= 0; k--) {
        count += begin[k][end - 1] >= 0;
        end = begin[k][end - 1] > 0 ? begin[k][end - 1] : end;
    }
    end = points;
    for (int k = pieces - 1, at = count; k >= 0; k--) {
        int from = begin[k][end - 1];
        if (from >= 0) {
            piece_out[--at] = fit_line(&point[from], end - from);
            end = from > 0 ? from : end;
        }
    }
    return count;
}
