// Runs the extension without an editor, and prints the command that it starts.
const Module = require('module');

const started = [];
const modules = {
  vscode: {
    workspace: {
      getConfiguration: () => ({ get: (_, usual) => usual }),
      createFileSystemWatcher: (pattern) => pattern,
    },
  },
  'vscode-languageclient/node': {
    LanguageClient: class {
      constructor(id, name, server, options) {
        if (!options.documentSelector.length) throw new Error('no files');
        this.server = server;
      }
      start() {
        started.push(this.server.command, ...this.server.args);
      }
      stop() {}
    },
  },
};
const load = Module._load;
Module._load = (name, ...rest) => modules[name] ?? load(name, ...rest);

const extension = require('./extension.js');
extension.activate();
extension.deactivate();
console.log(JSON.stringify(started));
