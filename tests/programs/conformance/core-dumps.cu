// Settings of GPU core dumps: of the process, before and after cuInit(), and of contexts.
#include "conformance.h"

static void showSizes(bool ofContext) {
  for (int which = 0; which <= 9; ++which) {
    size_t size = 77;
    const auto attribute = static_cast<CUcoredumpSettings>(which);
    if (ofContext) SAYCU(cuCoredumpGetAttribute, attribute, nullptr, &size);
    else SAYCU(cuCoredumpGetAttributeGlobal, attribute, nullptr, &size);
    VALUE(size);
  }
}

static void showNumbers(bool ofContext) {
  for (int which = CU_COREDUMP_ENABLE_ON_EXCEPTION; which <= CU_COREDUMP_ENABLE_USER_TRIGGER; ++which) {
    unsigned char is = 9;
    size_t size = sizeof is;
    const auto attribute = static_cast<CUcoredumpSettings>(which);
    if (ofContext) SAYCU(cuCoredumpGetAttribute, attribute, &is, &size);
    else SAYCU(cuCoredumpGetAttributeGlobal, attribute, &is, &size);
    VALUE(is);
    VALUE(size);
  }
  int contents = -1;
  size_t size = sizeof contents;
  if (ofContext) SAYCU(cuCoredumpGetAttribute, CU_COREDUMP_GENERATION_FLAGS, &contents, &size);
  else SAYCU(cuCoredumpGetAttributeGlobal, CU_COREDUMP_GENERATION_FLAGS, &contents, &size);
  VALUE(contents);
}

static void showText(bool ofContext, CUcoredumpSettings which) {
  char text[2048] = "before";
  size_t size = sizeof text;
  if (ofContext) SAYCU(cuCoredumpGetAttribute, which, text, &size);
  else SAYCU(cuCoredumpGetAttributeGlobal, which, text, &size);
  std::printf("%s: it is '%s'\n", currentSection, text);
  VALUE(size);
}

SECTION(process) {
  showSizes(false);
  showNumbers(false);
  DRIVER(cuInit)(0);
  showSizes(false);
  showNumbers(false);
  showText(false, CU_COREDUMP_FILE);
  showText(false, CU_COREDUMP_PIPE);
  bool is = true;
  int contents = 0;
  size_t size = sizeof is;
  SAYCU(cuCoredumpGetAttribute, CU_COREDUMP_LIGHTWEIGHT, &is, &size);
  SAYCU(cuCoredumpGetAttributeGlobal, CU_COREDUMP_LIGHTWEIGHT, nullptr, nullptr);
  SAYCU(cuCoredumpGetAttributeGlobal, CU_COREDUMP_LIGHTWEIGHT, &is, nullptr);
  for (size_t wrong : {0, 2, 100}) {
    SAYCU(cuCoredumpGetAttributeGlobal, CU_COREDUMP_LIGHTWEIGHT, &is, &wrong);
    SAYCU(cuCoredumpGetAttributeGlobal, CU_COREDUMP_GENERATION_FLAGS, &contents, &wrong);
    VALUE(wrong);
  }
  SAYCU(cuCoredumpSetAttributeGlobal, CU_COREDUMP_LIGHTWEIGHT, &is, &size);
  showNumbers(false);
  char name[2048] = "/tmp/name";
  size_t bytes = strlen(name) + 1;
  SAYCU(cuCoredumpSetAttributeGlobal, CU_COREDUMP_PIPE, name, &bytes);
  SAYCU(cuCoredumpSetAttributeGlobal, CU_COREDUMP_FILE, name, &bytes);
  showText(false, CU_COREDUMP_PIPE);
  showText(false, CU_COREDUMP_FILE);
  for (size_t room : {4, 9, 10}) SAYCU(cuCoredumpGetAttributeGlobal, CU_COREDUMP_FILE, name, &room);
  SAYCU(cuCoredumpSetAttributeGlobal, CU_COREDUMP_ENABLE_USER_TRIGGER, &is, &size);
  showNumbers(false);
  SAYCU(cuCoredumpSetAttributeGlobal, CU_COREDUMP_PIPE, name, &bytes);
}

SECTION(context) {
  CHECK(cudaFree(nullptr));
  showSizes(true);
  showNumbers(true);
  showText(true, CU_COREDUMP_FILE);
  showText(true, CU_COREDUMP_PIPE);
  bool is = true;
  size_t size = 0;
  SAYCU(cuCoredumpSetAttribute, CU_COREDUMP_LIGHTWEIGHT, nullptr, nullptr);
  SAYCU(cuCoredumpSetAttribute, CU_COREDUMP_LIGHTWEIGHT, nullptr, &size);
  VALUE(size);
  SAYCU(cuCoredumpSetAttribute, CU_COREDUMP_ENABLE_USER_TRIGGER, &is, &size);
  for (size_t wrong : {0, 2}) SAYCU(cuCoredumpSetAttribute, CU_COREDUMP_LIGHTWEIGHT, &is, &wrong);
  SAYCU(cuCoredumpSetAttribute, static_cast<CUcoredumpSettings>(0), &is, &size);
  SAYCU(cuCoredumpSetAttribute, CU_COREDUMP_MAX, &is, &size);
  SAYCU(cuCoredumpSetAttribute, CU_COREDUMP_LIGHTWEIGHT, &is, &size);
  showNumbers(true);
  for (int contents : {0x10, 0x100, 0x1f, 0x3f}) {
    size_t bytes = sizeof contents;
    VALUE(contents);
    SAYCU(cuCoredumpSetAttribute, CU_COREDUMP_GENERATION_FLAGS, &contents, &bytes);
    showNumbers(true);
  }
  is = false;
  SAYCU(cuCoredumpSetAttribute, CU_COREDUMP_LIGHTWEIGHT, &is, &size);
  showNumbers(true);
  is = true;
  SAYCU(cuCoredumpSetAttribute, CU_COREDUMP_TRIGGER_HOST, &is, &size);
  showNumbers(true);
  showNumbers(false);
}

SECTION(names) {
  CHECK(cudaFree(nullptr));
  char text[2048] = "/tmp/core.%h.%p";
  size_t size = strlen(text);
  SAYCU(cuCoredumpSetAttribute, CU_COREDUMP_FILE, text, &size);
  showText(true, CU_COREDUMP_FILE);
  showText(false, CU_COREDUMP_FILE);
  memset(text, 'a', sizeof text);
  text[1023] = '\0';
  for (size_t bytes : {1024, 1500}) SAYCU(cuCoredumpSetAttribute, CU_COREDUMP_FILE, text, &bytes);
  showText(true, CU_COREDUMP_FILE);
  size = 1;
  text[0] = '\0';
  SAYCU(cuCoredumpSetAttribute, CU_COREDUMP_FILE, text, &size);
  showText(true, CU_COREDUMP_FILE);
}

// A context has the process's settings at its creation.
SECTION(contexts) {
  CHECK(cudaFree(nullptr));
  bool is = true;
  size_t size = sizeof is;
  SAYCU(cuCoredumpSetAttributeGlobal, CU_COREDUMP_LIGHTWEIGHT, &is, &size);
  showNumbers(true);
  CUcontext context = nullptr;
  CUctxCreateParams none{};
  SAYCU(cuCtxCreate, &context, &none, 0, 0);
  showNumbers(true);
  is = false;
  SAYCU(cuCoredumpSetAttribute, CU_COREDUMP_LIGHTWEIGHT, &is, &size);
  showNumbers(false);
  SAYCU(cuCtxDestroy, context);
}
