// For the header that is precompiled.
