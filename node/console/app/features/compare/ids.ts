// The ids of the controls that keys lead to.
export const ADD_ID = "compare-add";
export const FILTER_ID = "compare-filter";
export const GROUP_ID = "compare-group";
