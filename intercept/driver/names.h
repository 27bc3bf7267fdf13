// For the generated entries: what a frame's text is limited to.
#pragma once

#include "intercept/session/modules/names.h"
