"use strict";

/** The shared library that this package has, for LD_PRELOAD. */
exports.library = require("path").join(__dirname, "lib/libhakmem.so.1");
