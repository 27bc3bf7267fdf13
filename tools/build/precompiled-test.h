// Precompiled headers for unit tests.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "precompiled.h"
