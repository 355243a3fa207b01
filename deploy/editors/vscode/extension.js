// Starts `switchback lsp` for the files of packs. The server does everything else.
const { workspace } = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

let client;

function activate() {
  const command = workspace.getConfiguration('switchback').get('path', 'switchback');
  const server = { command, args: ['lsp', '--stdio'] };
  // Contracts are watched, because a change of one leads to findings in the mapping files.
  const files = ['**/*.map.yaml', '**/pack.yaml', '**/contracts/**'];
  client = new LanguageClient('switchback', 'Switchback', server, {
    documentSelector: files.map((pattern) => ({ scheme: 'file', pattern })),
    synchronize: { fileEvents: files.map((pattern) => workspace.createFileSystemWatcher(pattern)) },
  });
  return client.start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
