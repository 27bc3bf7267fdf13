// The source for which precompiled.h is precompiled.
