// The official openai package under the OpenTelemetry SDK for Node.js, as its documentation
// has it: started before anything that it watches is loaded. Prints the trace, the span
// that asks, and the answer.
import { trace } from '@opentelemetry/api';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { apiKey, baseURL, messages, model } from './facts.mjs';

const sdk = new NodeSDK({ instrumentations: [new UndiciInstrumentation()] });
sdk.start();
const { default: OpenAI } = await import('openai');
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });

const facts = await trace.getTracer('client').startActiveSpan('ask', async (span) => {
  const answer = await client.chat.completions.create({ model, messages });
  span.end();
  return { trace: span.spanContext().traceId, content: answer.choices[0].message.content };
});
await sdk.shutdown();
console.log(JSON.stringify(facts));
