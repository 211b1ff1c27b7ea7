/* Convoy: plan and run the training of convolutional neural networks. Include this for all of it. */
#ifndef CONVOY_CONVOY_H
#define CONVOY_CONVOY_H

#include "convoy/model.h"
#include "convoy/status.h"
#include "convoy/train.h"
#include "convoy/version.h"

#endif
