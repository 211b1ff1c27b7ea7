/* Convoy: version. Semantic versioning; 0.x may still change its interface. */
#ifndef CONVOY_VERSION_H
#define CONVOY_VERSION_H

#define CVY_VERSION_MAJOR 0
#define CVY_VERSION_MINOR 1
#define CVY_VERSION_PATCH 0
#define CVY_VERSION "0.1.0"

#endif
