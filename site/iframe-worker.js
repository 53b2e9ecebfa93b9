// Browsers start no worker for a page that was opened from a disk. The search then works in a frame in its place.
"use strict";

class FrameWorker extends EventTarget {
  #frame = document.createElement("iframe");
  #loaded;

  constructor(url) {
    super();
    this.#frame.hidden = true;
    document.body.append(this.#frame);
    const inside = this.#frame.contentWindow;
    inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    inside.importScripts = (...urls) => Promise.all(urls.map((one) => this.#load(one)));
    this.#loaded = this.#load(url);
  }

  #load(url) {
    const script = this.#frame.contentDocument.createElement("script");
    script.src = url;
    return new Promise((resolve, reject) => {
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${url} cannot be loaded`));
      this.#frame.contentDocument.body.append(script);
    });
  }

  async postMessage(data) {
    await this.#loaded;
    this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
  }

  terminate() {
    this.#frame.remove();
  }
}

if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = FrameWorker;
}
