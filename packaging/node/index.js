"use strict";

/** The shared library of this package, for LD_PRELOAD. */
exports.library = require("path").join(__dirname, "lib/libhakmem.so.1");
