// What of the datasets' screens other parts of the console use.
export { prefetchDatasets } from "./queries";
export { datasetDefaults, datasetsDefaults, datasetsUrl, datasetUrl, type DatasetsState, type DatasetState } from "./url";
