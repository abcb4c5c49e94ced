/** What is used of the client for Kubernetes, by name, so that the program has this and not the classes for all kinds (bundle.mjs). */
export { HttpMethod, IsomorphicFetchHttpLibrary, KubeConfig, RequestContext, Watch } from '@kubernetes/client-node';
