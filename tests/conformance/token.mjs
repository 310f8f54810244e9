// Sends the server's token with every request of the suite, which knows no tokens.
import http from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { getGlobalDispatcher, setGlobalDispatcher } from "undici";

const bearer = `Bearer ${process.env.SUPERVISOR_MCP_TOKEN}`;
const request = http.request;
http.request = (...given) => {
  const made = request(...given);
  made.setHeader("authorization", bearer);
  return made;
};
syncBuiltinESMExports();
setGlobalDispatcher(
  getGlobalDispatcher().compose((send) => (options, handler) => {
    const { headers } = options;
    const signed = Array.isArray(headers)
      ? [...headers, "authorization", bearer]
      : { ...headers, authorization: bearer };
    return send({ ...options, headers: signed }, handler);
  }),
);
