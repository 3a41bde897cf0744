module.exports = {
  recurgentd: {
    input: process.env.DOCUMENT,
    output: { target: "orval/api.ts", schemas: "orval/model", client: "fetch", mode: "split", baseUrl: process.env.RECURGENT_URL },
  },
};
