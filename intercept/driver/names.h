// The longest text that a frame carries, for the generated entries.
#pragma once

#include "intercept/session/modules/names.h"
